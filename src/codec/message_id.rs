//! The id that a store gives a message: where it is, as upper-case hex.

use std::fmt;
use std::str::FromStr;

use super::Host;

/// Store host and physical offset: 32 hex digits with an IPv4 host, 56 with an IPv6 one.
/// (`MessageDecoder.createMessageId`)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    /// The host of the store.
    pub store_host: Host,
    /// Offset of the record's first byte in the commit log.
    pub physical_offset: i64,
}

/// Why a text is not a message id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum MessageIdError {
    #[error("a message id has 32 or 56 hex digits, not {len} bytes")]
    Length { len: usize },
    #[error("byte {at} of the message id is not a hex digit")]
    Digit { at: usize },
}

const MAX_LEN: usize = Host::V6_LEN + 8;

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let mut bytes = [0; MAX_LEN];
        let host_len = self.store_host.write_to(&mut bytes);
        bytes[host_len..host_len + 8].copy_from_slice(&self.physical_offset.to_be_bytes());
        let mut hex = [0; 2 * MAX_LEN];
        for (byte, pair) in bytes.iter().zip(hex.chunks_exact_mut(2)) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0xF)];
        }
        f.pad(std::str::from_utf8(&hex[..2 * (host_len + 8)]).expect("hex digits are text"))
    }
}

impl FromStr for MessageId {
    type Err = MessageIdError;

    /// Takes digits of either case, as upstream does.
    fn from_str(text: &str) -> Result<Self, MessageIdError> {
        let digits = text.as_bytes();
        let host_len = match digits.len() {
            32 => Host::V4_LEN,
            56 => Host::V6_LEN,
            len => return Err(MessageIdError::Length { len }),
        };
        let mut bytes = [0; MAX_LEN];
        for (at, &digit) in digits.iter().enumerate() {
            let value = char::from(digit).to_digit(16).ok_or(MessageIdError::Digit { at })?;
            bytes[at / 2] = bytes[at / 2] << 4 | value as u8;
        }
        let (host, rest) = bytes.split_at(host_len);
        let store_host = Host::from_bytes(host).expect("the length is a host's");
        let offset = rest.first_chunk().expect("eight bytes follow the host");
        Ok(Self { store_host, physical_offset: i64::from_be_bytes(*offset) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ip: &str, port: i32, physical_offset: i64) -> MessageId {
        MessageId { store_host: Host::new(ip.parse().unwrap(), port), physical_offset }
    }

    #[test]
    fn w18_maker_and_parser_agree() {
        for (id, text) in [
            (id("127.0.0.1", 10091, 1024), "7F0000010000276B0000000000000400"),
            (id("10.0.0.1", 10911, 123), "0A00000100002A9F000000000000007B"),
        ] {
            assert_eq!(id.to_string(), text);
            assert_eq!(text.parse(), Ok(id));
            assert_eq!(text.to_lowercase().parse(), Ok(id));
        }
    }

    #[test]
    fn w12_ids_with_ipv6_hosts_and_what_is_no_id() {
        let long = id("2001:db8::2", 10911, i64::MAX);
        assert_eq!(long.to_string(), "20010DB800000000000000000000000200002A9F7FFFFFFFFFFFFFFF");
        assert_eq!(long.to_string().parse(), Ok(long));
        for len in (0..60).filter(|&len| len != 32 && len != 56) {
            assert_eq!("0".repeat(len).parse::<MessageId>(), Err(MessageIdError::Length { len }));
        }
        assert_eq!("0A00000100002A9F00000000000000G0".parse::<MessageId>(), Err(MessageIdError::Digit { at: 30 }));
        assert_eq!("é".repeat(16).parse::<MessageId>(), Err(MessageIdError::Digit { at: 0 }));
    }
}

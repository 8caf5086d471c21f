//! CRC-32/IEEE with its top bit cleared, as RocketMQ stores it, and the decimal tail that carries one as a property.

use super::properties::{NAME_END, VALUE_END, name};
use super::text;
use crate::{planted, planted::Planted};

/// Bytes that the property CRC takes at the end of a record: name, separator, ten digits, separator.
pub(crate) const PROPERTY_CRC_LEN: usize = name::CRC32.len() + 1 + DIGITS + 1;
const DIGITS: usize = 10;

/// CRC-32/IEEE of `bytes` with the top bit cleared; 0 for no bytes. (`UtilAll.crc32`)
#[inline]
pub fn masked_crc(bytes: &[u8]) -> i32 {
    (crc32fast::hash(bytes) & 0x7FFF_FFFF) as i32
}

/// The CRC to store for a body.
#[inline]
pub(crate) fn body_crc(body: &[u8], planted: Planted) -> i32 {
    if planted!(planted, CrcNotMasked) {
        return crc32fast::hash(body) as i32;
    }
    masked_crc(body)
}

/// The property that carries `crc`, least significant digit first. (`MessageDecoder.createCrc32`)
pub(crate) fn property_crc_tail(crc: i32) -> [u8; PROPERTY_CRC_LEN] {
    let mut tail = [b'0'; PROPERTY_CRC_LEN];
    let name_len = name::CRC32.len();
    tail[..name_len].copy_from_slice(name::CRC32.as_bytes());
    tail[name_len] = NAME_END;
    let mut rest = crc.max(0);
    for digit in &mut tail[name_len + 1..name_len + 1 + DIGITS] {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    tail[PROPERTY_CRC_LEN - 1] = VALUE_END;
    tail
}

/// The CRC that a record's last bytes carry, if they have exactly the form that [`property_crc_tail`] writes.
pub(crate) fn property_crc_at_end(properties: &[u8]) -> Option<i32> {
    let tail: &[u8; PROPERTY_CRC_LEN] = properties.last_chunk()?;
    let digits = tail.strip_prefix(name::CRC32.as_bytes())?.strip_prefix(&[NAME_END])?.strip_suffix(&[VALUE_END])?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    i32::try_from(digits.iter().rev().fold(0u64, |crc, digit| crc * 10 + u64::from(digit - b'0'))).ok()
}

/// The CRC that a property's value stands for to upstream's check, which takes any text: digit `n` counts for `10^n`,
/// in wrapping arithmetic over UTF-16 units.
pub(crate) fn property_crc_value(value: &[u8]) -> i32 {
    let (mut crc, mut weight) = (0i32, 1i32);
    text::for_each_unit(value, |unit| {
        crc = crc.wrapping_add((i32::from(unit) - i32::from(b'0')).wrapping_mul(weight));
        weight = weight.wrapping_mul(10);
    });
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w06_the_crc_is_masked_and_zero_for_no_bytes() {
        assert_eq!(crc32fast::hash(&[2, 3, 4]), 3_498_416_806, "a vector whose raw CRC has the top bit");
        assert_eq!(masked_crc(&[2, 3, 4]), 1_350_933_158);
        assert_eq!(masked_crc(b""), 0);
        assert_eq!(masked_crc(b"123456789"), 0x4BF4_3926);
        assert_eq!(masked_crc(b"hello"), 0x3610_A686);
    }

    #[test]
    fn digits_are_reversed_and_padded_on_the_right() {
        for (crc, digits) in [
            (1_234_567_890, "0987654321"),
            (1, "1000000000"),
            (0, "0000000000"),
            (-5, "0000000000"),
            (i32::MAX, "7463847412"),
        ] {
            let tail = property_crc_tail(crc);
            assert_eq!(tail[..], *format!("__CRC32#\u{1}{digits}\u{2}").as_bytes());
            assert_eq!(property_crc_at_end(&tail), Some(crc.max(0)));
            assert_eq!(property_crc_value(digits.as_bytes()), crc.max(0));
        }
    }

    #[test]
    fn only_the_exact_form_is_a_property_crc() {
        assert_eq!(property_crc_at_end(b""), None);
        assert_eq!(property_crc_at_end(b"__CRC32#\x01100000000\x02"), None, "nine digits");
        assert_eq!(property_crc_at_end(b"__CRC32#\x0110000000x0\x02"), None);
        assert_eq!(property_crc_at_end(b"__CRC32#\x019999999999\x02"), None, "more than an i32");
        assert_eq!(property_crc_at_end(b"__CRC32#\x011000000000\x01"), None);
    }

    #[cfg(feature = "planted-faults")]
    #[test]
    fn planted_the_body_crc_keeps_its_top_bit() {
        use crate::planted::Fault;
        assert_eq!(body_crc(&[2, 3, 4], Planted::one(Fault::CrcNotMasked)) as u32, 3_498_416_806);
        assert_eq!(body_crc(&[2, 3, 4], Planted::NONE), 1_350_933_158);
    }
}

//! Java's string hash, and the two codes that RocketMQ makes of it: the tags code of a consume queue unit and the key
//! hash of an index entry.

use super::text;

/// `String.hashCode` of the text that Java decodes from `bytes`: over UTF-16 units, wrapping.
pub fn string_hash(bytes: &[u8]) -> i32 {
    extend_hash(0, bytes)
}

/// The tags code of a `TAGS` value: its hash, sign-extended; 0 for no tags.
/// (`MessageExtBrokerInner.tagsString2tagsCode`)
pub fn tags_code(tags: &[u8]) -> i64 {
    i64::from(string_hash(tags))
}

/// The hash of an index key, `topic` + `#` + `key`: never negative, and 0 where the absolute value overflows.
/// (`IndexFile.indexKeyHashMethod`)
pub fn index_key_hash(topic: &[u8], key: &[u8]) -> i32 {
    extend_hash(extend_hash(extend_hash(0, topic), b"#"), key).checked_abs().unwrap_or(0)
}

fn extend_hash(mut hash: i32, bytes: &[u8]) -> i32 {
    if bytes.is_ascii() {
        return bytes.iter().fold(hash, |hash, &byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte)));
    }
    text::for_each_unit(bytes, |unit| hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_java_does() {
        assert_eq!(tags_code(b"TagA"), 2_598_919);
        assert_eq!(tags_code(b""), 0);
        assert_eq!(tags_code(b"polygenelubricants"), -2_147_483_648, "sign-extended");
        assert_eq!(string_hash("\u{1F600}".as_bytes()), 0xD83D * 31 + 0xDE00, "two UTF-16 units");
        assert_eq!(string_hash(b"\xED\xA0\x80"), 0xFFFD, "one replacement");
    }

    #[test]
    fn an_index_key_hash_is_never_negative() {
        assert_eq!(index_key_hash(b"T", b"U1"), 0x0026_BD0B);
        assert_eq!(index_key_hash(b"T", b"k1"), 0x0026_BFB5);
        assert_eq!(index_key_hash(b"T", b"k9"), 0x0026_BFBD);
        assert_eq!(extend_hash(0, b"polygenelubricants").checked_abs(), None);
    }
}

//! Java's reading of UTF-8: malformed input becomes U+FFFD and never fails.
//!
//! It differs from Rust's lossy decoding in one thing only: an encoded surrogate (`ED A0..BF`, with its third byte where
//! that is a continuation) is one U+FFFD to Java.

use std::borrow::Cow;

/// Calls `unit` with each UTF-16 unit of `bytes` as Java decodes them.
pub(crate) fn for_each_unit(bytes: &[u8], mut unit: impl FnMut(u16)) {
    for_each_part(bytes, |part| match part {
        Some(text) => text.encode_utf16().for_each(&mut unit),
        None => unit(char::REPLACEMENT_CHARACTER as u16),
    });
}

/// The text that Java makes of `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for_each_part(bytes, |part| match part {
        Some(valid) => text.push_str(valid),
        None => text.push(char::REPLACEMENT_CHARACTER),
    });
    Cow::Owned(text)
}

/// Calls `part` with each valid stretch, and with `None` for each replacement.
fn for_each_part<'a>(mut bytes: &'a [u8], mut part: impl FnMut(Option<&'a str>)) {
    while let Some(chunk) = bytes.utf8_chunks().next() {
        if !chunk.valid().is_empty() {
            part(Some(chunk.valid()));
        }
        bytes = &bytes[chunk.valid().len()..];
        if chunk.invalid().is_empty() {
            return;
        }
        part(None);
        bytes = &bytes[replaced_len(bytes, chunk.invalid().len())..];
    }
}

/// How many bytes one replacement stands for, where Rust's decoder would take `invalid_len`.
fn replaced_len(bytes: &[u8], invalid_len: usize) -> usize {
    match bytes {
        [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => 3,
        [0xED, 0xA0..=0xBF, ..] => 2,
        _ => invalid_len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_text_is_replaced_as_java_does() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            (b"\xED\xA0\x80", "\u{FFFD}"),
            (b"\xED\xA0A", "\u{FFFD}A"),
            (b"\xED\xA0", "\u{FFFD}"),
            (b"\xED", "\u{FFFD}"),
            (b"a\xFFb", "a\u{FFFD}b"),
            (b"\xE2\x82A", "\u{FFFD}A"),
            (b"\xF0\x9F\x98\x80", "\u{1F600}"),
            (b"\xC3\x02", "\u{FFFD}\u{2}"),
        ] {
            assert_eq!(decode(bytes), text, "{bytes:02x?}");
            let mut units = Vec::new();
            for_each_unit(bytes, |unit| units.push(unit));
            assert_eq!(units, text.encode_utf16().collect::<Vec<_>>(), "{bytes:02x?}");
        }
    }
}

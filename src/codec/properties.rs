//! The properties of a message: names and values in one string, `name` U+0001 `value` U+0002 and so on.
//!
//! The string is what is kept and compared, in the order in which it was made; upstream's order is that of a Java
//! `HashMap`, and nothing depends on it. Reading follows upstream in every oddity:
//! * the last U+0002 may be missing; a pair without U+0001, without a name or without a value is skipped;
//! * a value may hold U+0001; of two pairs with one name the later counts.

use std::borrow::Cow;

use super::text;

/// Ends a name.
pub(crate) const NAME_END: u8 = 1;
/// Ends a value.
pub(crate) const VALUE_END: u8 = 2;

/// The most bytes of properties that a length field can tell.
pub const MAX_PROPERTIES_LEN: usize = i16::MAX as usize;

/// Names that the store itself knows.
pub mod name {
    /// Keys to find the message by, separated by spaces.
    pub const KEYS: &str = "KEYS";
    /// The client's id of the message.
    pub const UNIQ_KEY: &str = "UNIQ_KEY";
    /// Tags to filter by.
    pub const TAGS: &str = "TAGS";
    /// Whether the producer waits for the message to be stored; `false` is the only value that says no.
    pub const WAIT: &str = "WAIT";
    /// Delay level, a number.
    pub const DELAY: &str = "DELAY";
    /// Where a duplicated record came from.
    pub const DUP_INFO: &str = "DUP_INFO";
    /// How many messages an inner batch has.
    pub const INNER_NUM: &str = "INNER_NUM";
    /// First queue offset of an inner batch.
    pub const INNER_BASE: &str = "INNER_BASE";
    /// CRC of the record that carries it; always the last property.
    pub const CRC32: &str = "__CRC32#";
}

/// Properties as bytes that came from elsewhere; any bytes will do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PropertiesRef<'a>(pub &'a [u8]);

impl<'a> PropertiesRef<'a> {
    /// The pairs that count as such, in order, with duplicates.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.0.split(|&byte| byte == VALUE_END).filter_map(|pair| {
            let end = pair.iter().position(|&byte| byte == NAME_END)?;
            let (name, value) = (&pair[..end], &pair[end + 1..]);
            (!name.is_empty() && !value.is_empty()).then_some((name, value))
        })
    }

    /// The value of a name.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        let name = name.as_bytes();
        self.0.rsplit(|&byte| byte == VALUE_END).find_map(|pair| match pair.strip_prefix(name)? {
            [NAME_END, value @ ..] if !value.is_empty() && !name.is_empty() => Some(value),
            _ => None,
        })
    }

    /// Names and values as Java reads them: malformed UTF-8 replaced, each name once, at the place of its first pair.
    pub fn to_pairs(self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let mut pairs: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for (name, value) in self.iter() {
            let (name, value) = (text::decode(name), text::decode(value));
            match pairs.iter_mut().find(|pair| pair.0 == name) {
                Some(pair) => pair.1 = value,
                None => pairs.push((name, value)),
            }
        }
        pairs
    }

    /// The stretches that are left when every pair of a name is cut out. (`MessageUtils.deleteProperty`)
    pub(crate) fn without(self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.0
            .split_inclusive(|&byte| byte == VALUE_END)
            .filter(move |pair| pair.strip_prefix(name.as_bytes()).is_none_or(|rest| rest.first() != Some(&NAME_END)))
    }
}

/// Properties to send, kept in their wire form, so that encoding a message copies them once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    encoded: String,
}

/// Why a property was refused: what would be read back is not what was set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum PropertyError {
    #[error("a property's name is empty")]
    EmptyName,
    #[error("property {name:?} is empty: an empty value is never read back")]
    EmptyValue { name: String },
    #[error("property {name:?} holds U+0001 or U+0002, which separate properties")]
    Separator { name: String },
}

impl Properties {
    /// No properties.
    pub const fn new() -> Self {
        Self { encoded: String::new() }
    }

    /// Takes a properties string as it is.
    pub const fn from_encoded(encoded: String) -> Self {
        Self { encoded }
    }

    /// Sets a value, in the place of the name's present one if it has one.
    ///
    /// Upstream lets a separator in a name or value pass, and so lets one property forge others.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), PropertyError> {
        let separator = |text: &str| text.bytes().any(|byte| byte == NAME_END || byte == VALUE_END);
        if name.is_empty() {
            return Err(PropertyError::EmptyName);
        }
        if separator(name) || separator(value) {
            return Err(PropertyError::Separator { name: name.to_owned() });
        }
        if value.is_empty() {
            return Err(PropertyError::EmptyValue { name: name.to_owned() });
        }
        if let Some(old) = self.view().get(name) {
            let start = old.as_ptr().addr() - self.encoded.as_ptr().addr();
            self.encoded.replace_range(start..start + old.len(), value);
            return Ok(());
        }
        if !self.encoded.is_empty() && !self.encoded.as_bytes().ends_with(&[VALUE_END]) {
            self.encoded.push(char::from(VALUE_END));
        }
        self.push_as_upstream(Some(name), Some(value));
        Ok(())
    }

    /// Adds a pair without any check, exactly as upstream's encoder does: none for no value, `null` for no name, an
    /// empty value that will not be read back, separators unescaped. (`MessageDecoder.messageProperties2String`)
    pub fn push_as_upstream(&mut self, name: Option<&str>, value: Option<&str>) {
        let Some(value) = value else { return };
        self.encoded.push_str(name.unwrap_or("null"));
        self.encoded.push(char::from(NAME_END));
        self.encoded.push_str(value);
        self.encoded.push(char::from(VALUE_END));
    }

    /// Removes every pair of a name.
    pub fn remove(&mut self, name: &'static str) {
        let kept: Vec<u8> = self.view().without(name).flatten().copied().collect();
        self.encoded = String::from_utf8(kept).expect("pairs are cut at ASCII separators");
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.view().get(name).map(|value| std::str::from_utf8(value).expect("values are cut at ASCII separators"))
    }

    /// The properties as bytes.
    pub const fn view(&self) -> PropertiesRef<'_> {
        PropertiesRef(self.encoded.as_bytes())
    }

    /// The properties string.
    pub fn as_str(&self) -> &str {
        &self.encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(bytes: &[u8]) -> Vec<(String, String)> {
        PropertiesRef(bytes).to_pairs().into_iter().map(|(n, v)| (n.into_owned(), v.into_owned())).collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn reading_follows_upstream_in_its_oddities() {
        for (bytes, expected) in [
            (&b""[..], &[][..]),
            (b"a\x01b", &[("a", "b")]),
            (b"\x01b\x02", &[]),
            (b"a\x01\x02", &[]),
            (b"ab\x01\x02c\x01d\x02", &[("c", "d")]),
            (b"a\x01b\x01c\x02", &[("a", "b\u{1}c")]),
            (b"abc\x02d\x01e\x02", &[("d", "e")]),
            (b"\x02\x02a\x01b", &[("a", "b")]),
            (b"K\x01V\x01W\x02", &[("K", "V\u{1}W")]),
            (b"a\x01b\x02a\x01c\x02", &[("a", "c")]),
            (b"a\x01b\x02a\x01\x02", &[("a", "b")]),
            (b"a\x01\x01\x02", &[("a", "\u{1}")]),
            (b"\xFFa\x01\xED\xA0\x80\x02", &[("\u{FFFD}a", "\u{FFFD}")]),
        ] {
            assert_eq!(pairs(bytes), owned(expected), "{bytes:02x?}");
            for (name, value) in expected.iter().filter(|pair| pair.0.is_ascii() && pair.1.is_ascii()) {
                assert_eq!(PropertiesRef(bytes).get(name), Some(value.as_bytes()), "{bytes:02x?}");
            }
            assert_eq!(PropertiesRef(bytes).get(""), None);
        }
    }

    #[test]
    fn a_separator_cannot_forge_a_property() {
        let mut properties = Properties::new();
        properties.insert("TAGS", "good").unwrap();
        let forged = properties.insert("x", "x\u{2}TAGS\u{1}evil");
        assert_eq!(forged, Err(PropertyError::Separator { name: "x".to_owned() }));
        assert_eq!(properties.insert("a\u{1}", "b"), Err(PropertyError::Separator { name: "a\u{1}".to_owned() }));
        assert_eq!(properties.insert("", "b"), Err(PropertyError::EmptyName));
        assert_eq!(properties.insert("e", ""), Err(PropertyError::EmptyValue { name: "e".to_owned() }));
        assert_eq!(properties.as_str(), "TAGS\u{1}good\u{2}");
    }

    #[test]
    fn a_value_is_replaced_in_its_place() {
        let mut properties = Properties::from_encoded("a\u{1}1\u{2}b\u{1}2".to_owned());
        properties.insert("c", "3").unwrap();
        properties.insert("a", "longer").unwrap();
        assert_eq!(properties.as_str(), "a\u{1}longer\u{2}b\u{1}2\u{2}c\u{1}3\u{2}");
        properties.remove("b");
        assert_eq!(properties.as_str(), "a\u{1}longer\u{2}c\u{1}3\u{2}");
        assert_eq!(properties.get("c"), Some("3"));
        assert_eq!(properties.get("b"), None);
    }
}

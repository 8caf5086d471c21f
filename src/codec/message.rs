//! A message as a client sees it.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Properties, PropertiesRef};

/// A message to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The topic. A batch body does not carry it: the request around it does.
    pub topic: String,
    /// The user's flag.
    pub flag: i32,
    /// The body.
    pub body: Bytes,
    /// The properties, already in their wire form.
    pub properties: Properties,
}

/// What a batch body carries of a message, borrowed. `properties` is the properties string, byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRef<'a> {
    /// The user's flag.
    pub flag: i32,
    /// The body.
    pub body: &'a [u8],
    /// The properties.
    pub properties: PropertiesRef<'a>,
}

impl<'a> From<&'a Message> for MessageRef<'a> {
    fn from(message: &'a Message) -> Self {
        Self { flag: message.flag, body: &message.body, properties: message.properties.view() }
    }
}

impl<'a> From<&MessageRef<'a>> for MessageRef<'a> {
    fn from(message: &MessageRef<'a>) -> Self {
        *message
    }
}

/// A growable buffer that messages and records are encoded into; nothing is allocated where its capacity suffices.
pub trait Grow: BufMut {
    /// Makes room for `additional` more bytes, exactly where that is a choice.
    fn grow(&mut self, additional: usize);
}

impl Grow for Vec<u8> {
    fn grow(&mut self, additional: usize) {
        self.reserve_exact(additional);
    }
}

impl Grow for BytesMut {
    fn grow(&mut self, additional: usize) {
        self.reserve(additional);
    }
}

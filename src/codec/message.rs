//! A message as a client sees it.

use bytes::Bytes;

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

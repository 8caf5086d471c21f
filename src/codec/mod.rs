//! Bytes to messages and back: properties, client batch, stored record, record check.

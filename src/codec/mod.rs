//! Bytes to messages and back, byte for byte as RocketMQ 5.5.1 writes and reads them.
//!
//! Model: every number is a big-endian *signed* integer. A client message or batch ([`batch`]) carries flag, body and
//! properties; the store turns each into one record ([`record`]), which is checked ([`check`](mod@check)), looked into
//! without copying ([`view`]) and found again by walking a file ([`scan`]). Decoders take any bytes: they answer with a
//! typed error, never with a panic, and reserve nothing by a size that they have not compared with what is there.
//!
//! Not modelled: the remoting frame around a batch, compression of bodies, the offset fan-out of light message queues.

pub mod batch;
pub mod check;
mod crc;
mod error;
pub mod hash;
mod host;
mod layout;
mod message;
mod message_id;
pub mod properties;
pub mod record;
pub mod scan;
pub mod sys_flag;
mod text;
pub mod view;
mod writer;

pub use check::{CheckOptions, Outcome, PropertyCrc, Rejection, check};
pub use crc::masked_crc;
pub use error::{BatchError, EncodeError};
pub use host::Host;
pub use layout::{Magic, SMALLEST_RECORD_LEN};
pub use message::{Message, MessageRef};
pub use message_id::{MessageId, MessageIdError};
pub use properties::{Properties, PropertiesRef, PropertyError};
pub use record::{Assigned, BLANK_LEN, RecordHeader, RecordOptions, RecordTemplate};
pub use scan::{RecordScanner, ScanOptions, Scanned};
pub use sys_flag::{SysFlag, Transaction};
pub use view::RecordView;
pub use writer::Grow;

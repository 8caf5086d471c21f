//! Named steps of CPU work. A machine profile gives each a cost in nanoseconds, the same in every configuration.

macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A named step of CPU work, for [`Env::charge`](super::Env::charge).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Step { $($(#[$doc])* $variant,)* }

        impl Step {
            /// All steps.
            pub const ALL: &'static [Step] = &[$(Step::$variant,)*];

            /// The name that profiles and reports use.
            pub const fn name(self) -> &'static str {
                match self { $(Step::$variant => $name,)* }
            }
        }
    };
}

steps! {
    /// Encode one message; units: messages.
    EncodeMessage => "encode.message",
    /// Copy or checksum bytes; units: bytes.
    CopyByte => "copy.byte",
    /// Append one record to a log under its lock; units: records.
    AppendRecord => "append.record",
    /// Check one record; units: records.
    CheckRecord => "check.record",
    /// Read one record; units: records.
    ReadRecord => "read.record",
    /// Dispatch one record to derived files; units: records.
    DispatchRecord => "dispatch.record",
    /// Run one task of an executor, beside its own cost; units: tasks.
    RunTask => "run.task",
}

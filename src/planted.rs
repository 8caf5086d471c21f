//! Planted faults: realistic mistakes that the testbed must find.
//!
//! Most were real bugs of message stores. Without the feature `planted-faults` [`planted!`](crate::planted!) is the
//! constant `false` and nothing of this is in the store; with it, a fault is an option of one store instance.

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident => $name:literal, $about:literal;)*) => {
        /// A planted fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $variant,)* }

        impl Fault {
            /// The whole catalogue.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant,)*];

            /// Name on the command line and in case files.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$variant => $name,)* }
            }

            /// What the mistake is.
            pub const fn about(self) -> &'static str {
                match self { $(Fault::$variant => $about,)* }
            }

            /// Finds a fault by its name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|fault| fault.name() == name)
            }
        }
    };
}

faults! {
    /// An append is acknowledged durable before its sync has ended.
    AckBeforeSync => "ack-before-sync", "an append is acknowledged durable before its sync has ended";
    /// The directory of a new segment is not synced.
    NoDirectorySync => "no-directory-sync", "the directory is not synced after a segment is made";
    /// The record check takes a total size that no record can have.
    SizeCheckSkipped => "size-check-skipped", "the record check does not refuse an impossible total size";
    /// Recovery cuts behind the bad record instead of before it.
    TruncateWrongRecord => "truncate-wrong-record", "recovery cuts the log one record too early";
    /// A failed sync is tried again and the second success believed.
    RetryFailedSync => "retry-failed-sync", "a failed sync is retried and its second success believed";
    /// The durable mark is written before the data is synced.
    MarkAheadOfData => "mark-ahead-of-data", "the durable mark is written before the data it speaks of is synced";
    /// The body CRC keeps its top bit.
    CrcNotMasked => "crc-not-masked", "the body CRC is stored with its top bit";
    /// Recovery takes a whole record whose own physical offset is not where it stands.
    StaleRecordAccepted => "stale-record-accepted", "recovery takes a record whose own offset is not where it stands";
    /// The blank at a segment's end is written without its length.
    BlankWithoutLength => "blank-without-length", "the blank at the end of a segment is written without its length";
    /// Rolling to a new segment forgets the record that did not fit.
    RollLosesRecord => "roll-loses-record", "rolling to a new segment loses the record that did not fit";
}

/// The fault planted in a store instance, if any. Zero-sized and always empty without the feature `planted-faults`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planted {
    #[cfg(feature = "planted-faults")]
    fault: Option<Fault>,
}

impl Planted {
    /// Nothing planted.
    pub const NONE: Self = Self {
        #[cfg(feature = "planted-faults")]
        fault: None,
    };

    /// Plants one fault.
    #[cfg(feature = "planted-faults")]
    pub const fn one(fault: Fault) -> Self {
        Self { fault: Some(fault) }
    }

    /// Whether `fault` is planted.
    #[inline(always)]
    #[cfg(feature = "planted-faults")]
    pub fn is(self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Whether `fault` is planted: never, in this build.
    #[inline(always)]
    #[cfg(not(feature = "planted-faults"))]
    pub const fn is(self, _fault: Fault) -> bool {
        false
    }
}

/// `planted!(planted, Name)`: whether the fault `Name` is planted in this instance; the constant `false` without the
/// feature `planted-faults`.
#[macro_export]
macro_rules! planted {
    ($planted:expr, $fault:ident) => {
        $planted.is($crate::planted::Fault::$fault)
    };
}

//! The broker's flag word of a record.

use super::Host;

/// The broker's flag word; bits without a method here are kept as they are. (`MessageSysFlag`)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SysFlag(pub i32);

/// What a record is to transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transaction {
    /// Not part of one.
    None,
    /// The message of an undecided one; not in a queue.
    Prepared,
    /// The message of a committed one.
    Commit,
    /// The mark that one was rolled back; not in a queue.
    Rollback,
}

impl SysFlag {
    /// The body is compressed.
    pub const COMPRESSED: i32 = 0x1;
    const TRANSACTION: i32 = 0xC;
    const BORN_HOST_V6: i32 = 0x10;
    const STORE_HOST_V6: i32 = 0x20;
    /// The body holds messages of several queues' fan-out.
    pub const NEED_UNWRAP: i32 = 0x40;
    /// The body is itself a batch.
    pub const INNER_BATCH: i32 = 0x80;

    /// The transaction bits.
    pub const fn transaction(self) -> Transaction {
        match self.0 & Self::TRANSACTION {
            0x0 => Transaction::None,
            0x4 => Transaction::Prepared,
            0x8 => Transaction::Commit,
            _ => Transaction::Rollback,
        }
    }

    /// Whether the record gets a place in a queue.
    pub const fn is_queued(self) -> bool {
        matches!(self.transaction(), Transaction::None | Transaction::Commit)
    }

    /// Whether the born host takes 20 bytes.
    pub const fn is_born_host_v6(self) -> bool {
        self.0 & Self::BORN_HOST_V6 != 0
    }

    /// Whether the store host takes 20 bytes.
    pub const fn is_store_host_v6(self) -> bool {
        self.0 & Self::STORE_HOST_V6 != 0
    }

    /// The flag with the transaction bits set to `transaction`.
    #[must_use]
    pub const fn with_transaction(self, transaction: Transaction) -> Self {
        let bits = match transaction {
            Transaction::None => 0x0,
            Transaction::Prepared => 0x4,
            Transaction::Commit => 0x8,
            Transaction::Rollback => 0xC,
        };
        Self(self.0 & !Self::TRANSACTION | bits)
    }

    /// The flag with the host bits set to what the hosts are. RocketMQ only ever sets them, so that a bit which a client
    /// sent along with an IPv4 host makes a record that cannot be read; here it is cleared.
    #[must_use]
    pub const fn with_hosts(self, born: Host, store: Host) -> Self {
        let born = if born.is_v6() { Self::BORN_HOST_V6 } else { 0 };
        let store = if store.is_v6() { Self::STORE_HOST_V6 } else { 0 };
        Self(self.0 & !(Self::BORN_HOST_V6 | Self::STORE_HOST_V6) | born | store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_host_bit_is_cleared() {
        let v4 = Host::new("1.2.3.4".parse().unwrap(), 1);
        let v6 = Host::new("::1".parse().unwrap(), 1);
        assert_eq!(SysFlag(0x35).with_hosts(v4, v4), SysFlag(0x05));
        assert_eq!(SysFlag(0x25).with_hosts(v6, v4), SysFlag(0x15));
        assert_eq!(SysFlag(0x15).with_hosts(v4, v6), SysFlag(0x25));
    }

    #[test]
    fn transaction_kinds_round_trip() {
        for kind in [Transaction::None, Transaction::Prepared, Transaction::Commit, Transaction::Rollback] {
            let flag = SysFlag(0x7F3).with_transaction(kind);
            assert_eq!(flag.transaction(), kind);
            assert_eq!(flag.0 & !0xC, 0x7F3 & !0xC);
            assert_eq!(flag.is_queued(), matches!(kind, Transaction::None | Transaction::Commit));
        }
    }
}

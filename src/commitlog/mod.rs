//! The RocketMQ-compatible store on top of `log`.

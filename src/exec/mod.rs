//! Executors on top of `env`: a pool of workers, and ordered (serial) executors on it.

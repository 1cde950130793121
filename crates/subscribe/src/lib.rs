//! Packet subscriptions: filters over the contents of messages, compiled into table entries.

#![forbid(unsafe_code)]

//! Hostile clients: messages, silence and unread responses, and service for others all the same.

mod answers;
mod connections;
mod limits;
mod messages;
mod rig;

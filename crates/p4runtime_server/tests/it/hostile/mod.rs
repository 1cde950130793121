//! Hostile clients: messages, silence and unread responses, and service for others all the same.

mod answers;
mod connections;
mod messages;
mod rig;

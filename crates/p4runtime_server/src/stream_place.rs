//! Holds the place of a stream in the limits of streams.

use std::sync::Arc;

use crate::arbitration::StreamId;
use crate::service::ServiceState;

/// The place of a stream among those of the server and of its client. It is held until the stream has ended, and its
/// response has been sent or abandoned: messages that the client does not take stay in memory until then.
pub(crate) struct StreamPlace {
    pub(crate) hub: Arc<ServiceState>,
    pub(crate) stream: StreamId,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.hub.server().release_stream(self.stream);
    }
}

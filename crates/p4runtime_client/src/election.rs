//! Takes part in elections: becomes the primary of a device, alone or among other clients that stay for one write.

use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::CallError;
use crate::mastership::Mastership;
use crate::stream::ControllerStream;

/// Time after which a primary counts as one that stays. Clients that make one write are primary for less.
const RESIDENT_AFTER: Duration = Duration::from_secs(2);
/// Maximum time during which other clients that make one write may win the election first.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A lost election.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// Another controller is primary, and stays so.
    #[error("another controller is primary")]
    OtherPrimary {
        /// The election id of that controller, if the server reports it.
        election_id: Option<u128>,
    },
    /// No controller is primary, and the server has seen a higher election id.
    #[error("election id {wanted} is below {highest}, the highest that the server has seen")]
    TooLow {
        /// The election id that was asked for.
        wanted: u128,
        /// The highest election id that the server has seen.
        highest: u128,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl From<Mastership> for ElectionError {
    fn from(mastership: Mastership) -> ElectionError {
        ElectionError::OtherPrimary { election_id: mastership.election_id() }
    }
}

impl Client {
    /// Becomes the primary of the default role. Returns the stream, which holds the mastership, and the election id.
    ///
    /// With an election id of its own the client takes the place of a primary with a lower one. Without one it waits
    /// until no controller is primary, and uses the highest id that the server has seen: a controller that comes back
    /// with that id is not locked out.
    ///
    /// # Errors
    /// If another controller is primary. Without an election id: if it stays primary for 2 s, or others win for 15 s.
    pub async fn become_primary(&self, election_id: Option<u128>) -> Result<(ControllerStream, u128), ElectionError> {
        match election_id {
            Some(id) => self.claim(id).await,
            None => self.claim_vacancy().await,
        }
    }

    /// Becomes the primary as [`Client::become_primary`] does. Where another controller is primary and the client has
    /// no election id, it returns a stream that only listens.
    ///
    /// # Errors
    /// If a call fails; with an election id, as [`Client::become_primary`].
    pub async fn become_primary_or_listen(
        &self,
        election_id: Option<u128>,
    ) -> Result<(ControllerStream, Option<u128>), ElectionError> {
        if let Some(id) = election_id {
            let (stream, id) = self.claim(id).await?;
            return Ok((stream, Some(id)));
        }
        let mut stream = self.open_stream(None).await?;
        let mastership = stream.mastership().await?;
        if let Mastership::Backup { .. } = mastership {
            return Ok((stream, None));
        }
        let wanted = mastership.election_id().unwrap_or(1);
        let is_primary = stream.arbitrate(Some(wanted)).await?.is_primary();
        Ok((stream, is_primary.then_some(wanted)))
    }

    async fn claim(&self, wanted: u128) -> Result<(ControllerStream, u128), ElectionError> {
        let mut stream = self.open_stream(Some(wanted)).await?;
        match stream.mastership().await? {
            Mastership::Primary { .. } => Ok((stream, wanted)),
            Mastership::NoPrimary { highest: Some(highest) } => Err(ElectionError::TooLow { wanted, highest }),
            other => Err(other.into()),
        }
    }

    /// Becomes the primary once no controller is. Clients that make one write all ask for the same election id: the
    /// server decides which one gets it, and the others try again.
    async fn claim_vacancy(&self) -> Result<(ControllerStream, u128), ElectionError> {
        let begin = Instant::now();
        loop {
            let mut stream = self.open_stream(None).await?;
            let mut mastership = stream.mastership().await?;
            while let Mastership::Backup { .. } = mastership {
                match tokio::time::timeout(RESIDENT_AFTER, stream.events.mastership()).await {
                    Ok(_) if begin.elapsed() >= ELECTION_TIMEOUT => return Err(mastership.into()),
                    Ok(Ok(next)) => mastership = next,
                    Ok(Err(_)) => break,
                    Err(_) => return Err(mastership.into()),
                }
            }
            let wanted = mastership.election_id().unwrap_or(1);
            match stream.arbitrate(Some(wanted)).await {
                Ok(Mastership::Primary { election_id }) if election_id == wanted => return Ok((stream, wanted)),
                _ if begin.elapsed() < ELECTION_TIMEOUT => tokio::time::sleep(RETRY_PAUSE).await,
                Ok(other) => return Err(other.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

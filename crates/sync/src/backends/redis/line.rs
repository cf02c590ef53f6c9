//! One connection that all requests share, made anew by the next who needs it when it breaks.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use toctou_tls::redis::Address;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::server::failed;
use crate::{Error, Result};

/// No answer in this time is a failure.
const ANSWER: Duration = Duration::from_secs(2);

pub struct Line {
    address: Address,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// How many connections there were.
    number: u64,
    /// When there was last none to be had, and why.
    refused: Option<(Instant, Arc<str>)>,
}

impl Line {
    pub async fn open(url: &str) -> Result<Self> {
        let address = Address::parse(url).map_err(|error| Error::Invalid(error.to_string()))?;
        let line = Self {
            address,
            state: Mutex::default(),
        };
        line.connection().await?;
        Ok(line)
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection)> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((state.number, connection.clone()));
        }
        // Somebody has tried while this one waited: to try again for each of many would make the last wait for all.
        if let Some((_, because)) = state.refused.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(failed(because.as_ref()));
        }
        match self.address.connect(ANSWER).await {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                state.number += 1;
                Ok((state.number, connection))
            }
            Err(error) => {
                state.refused = Some((Instant::now(), error.to_string().into()));
                Err(failed(error))
            }
        }
    }

    /// Asks something. It is not asked again if the connection breaks: the server may have done it.
    pub async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T> {
        let (number, mut connection) = self.connection().await?;
        let answer = question(&mut connection).await;
        // Also one that is only silent: perhaps nobody is there any more.
        if answer
            .as_ref()
            .is_err_and(|error| error.is_io_error() || error.is_unrecoverable_error())
        {
            let mut state = self.state.lock().await;
            if state.number == number {
                state.connection = None;
            }
        }
        answer.map_err(failed)
    }
}

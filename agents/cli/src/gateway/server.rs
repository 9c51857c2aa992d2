//! Connections: accepted up to a limit, each bounded in time, ended in order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections at once; more wait in the system's queue.
const CONNECTIONS: usize = 1024;
/// In which a request's head must arrive; also how long a connection may rest between two.
const HEAD: Duration = Duration::from_secs(30);
/// After which a connection ends with the request it is at, so that a client that never reads holds none for ever.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Before the next try when the system gives no connection, as for want of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`. Then takes no more connections, and gives requests under way `grace` to end.
///
/// # Errors
/// If the listener cannot be used at all.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    grace: Duration,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    listener.local_addr()?;
    loop {
        let place = tokio::select! {
            () = shutdown.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.map_err(io::Error::other)?,
        };
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, shutdown) = (router.clone(), shutdown.clone());
                connections.spawn(async move {
                    connection(stream, router, grace, shutdown).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, ended).await.is_err() {
        tracing::warn!("ending {} connections whose requests took too long", connections.len());
        connections.shutdown().await;
    }
    Ok(())
}

/// Serves one connection. When its client leaves, the request under way is dropped.
async fn connection(stream: TcpStream, router: Router, grace: Duration, shutdown: CancellationToken) {
    // Answers are written at once, so waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut serving = std::pin::pin!(serving);
    let result = tokio::select! {
        result = serving.as_mut() => Some(result),
        () = shutdown.cancelled() => None,
        () = tokio::time::sleep(LIFETIME) => None,
    };
    let result = match result {
        Some(result) => Ok(result),
        None => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(grace, serving).await
        }
    };
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a connection ended: {error}"),
        Err(_) => tracing::debug!("a connection was ended"),
    }
}

//! Connections: accepted up to a limit, each bounded in time, ended in order.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connections::{Connections, Place};

/// Connections at once.
const CONNECTIONS: usize = 2048;
/// Of them from one address, which may be a proxy's.
const OF_ONE_ADDRESS: usize = 1024;
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
    let places = Connections::new(CONNECTIONS, OF_ONE_ADDRESS);
    let mut connections = JoinSet::new();
    listener.local_addr()?;
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let Some(place) = places.admit(from.ip(), Instant::now()) else { continue };
                connections.spawn(connection(stream, router.clone(), grace, place, shutdown.clone()));
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
async fn connection(stream: TcpStream, router: Router, grace: Duration, place: Place, shutdown: CancellationToken) {
    // Answers are written at once, so waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let (router, activity) = (TowerToHyperService::new(router), Arc::clone(&place.activity));
    let service = service_fn(move |request| {
        let (answer, busy) = (router.call(request), activity.begin());
        async move {
            // Until its last part is sent the answer is under way.
            Ok::<_, Infallible>(answer.await?.map(|body| {
                body.map_frame(move |frame| {
                    busy.follow();
                    frame
                })
            }))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let result = tokio::select! {
        result = serving.as_mut() => Some(result),
        () = shutdown.cancelled() => None,
        () = tokio::time::sleep(LIFETIME) => None,
        // It rests: there is nothing to wait for.
        () = place.end.cancelled() => return,
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

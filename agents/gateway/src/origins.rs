//! Which pages in browsers may ask, and by which names this machine is reached.
//!
//! Sources: the Fetch standard, <https://fetch.spec.whatwg.org/#http-cors-protocol>; for names, the attack by DNS
//! rebinding, in which a page makes its own name point to this machine.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use thiserror::Error;

use super::error::ApiError;

/// Seconds for which a browser may remember what it may ask.
const REMEMBERED: &str = "600";
/// Headers of answers that pages may read.
const EXPOSED: &str = "x-request-id, x-receipt-id, retry-after";

/// Text that is no origin.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no origin: write scheme, host and port as browsers do, as in https://chat.example.org, or * for all")]
pub struct NoOrigin(String);

/// Pages that may ask: those of this machine, and others by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origins {
    every: bool,
    named: Vec<String>,
}

impl Origins {
    /// Those of this machine, and these: `*` is every page.
    ///
    /// # Errors
    /// [`NoOrigin`].
    pub fn new(named: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, NoOrigin> {
        let mut this = Self::default();
        for origin in named {
            let origin: String = origin.into();
            if origin == "*" {
                this.every = true;
            } else if host_of(&origin).is_some() {
                this.named.push(origin.to_ascii_lowercase());
            } else {
                return Err(NoOrigin(origin));
            }
        }
        Ok(this)
    }

    fn admit(&self, origin: &str) -> bool {
        self.every
            || host_of(origin).is_some_and(is_here)
            || self.named.iter().any(|named| named.eq_ignore_ascii_case(origin))
    }

    /// Whether a request that needs no key names this machine, or a machine that a page may come from.
    ///
    /// # Errors
    /// What to tell the client.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let name = without_port(host);
        let known = is_here(name)
            || self.named.iter().any(|named| host_of(named).is_some_and(|of| of.eq_ignore_ascii_case(name)));
        if known { Ok(()) } else { Err(ApiError::other_host(host)) }
    }
}

/// Host of an origin, as `localhost` of `http://localhost:3000`.
fn host_of(origin: &str) -> Option<&str> {
    let (scheme, rest) = origin.split_once("://")?;
    let plain = !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']);
    let schemed =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (plain && schemed).then(|| without_port(rest))
}

/// A host without its port; an IPv6 address without its brackets.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Whether a host is this machine whoever asks: what needs no name server.
fn is_here(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Answers what browsers ask before a page's request, and lets pages read answers that are meant for them.
pub(super) async fn answer(State(origins): State<Arc<Origins>>, request: Request<Body>, next: Next) -> Response {
    let Some(origin) = request.headers().get(header::ORIGIN).cloned() else { return next.run(request).await };
    let admitted = origin.to_str().is_ok_and(|origin| origins.admit(origin));
    let asked = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if request.method() == Method::OPTIONS && asked {
        if !admitted {
            return ApiError::other_origin(origin.to_str().unwrap_or("?")).into_response();
        }
        let wanted = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
        // Clients send headers of their own; none of them opens anything but Authorization, which a page has to know.
        if let Some(wanted) = wanted {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted);
        }
        response
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if admitted {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_machine_may_ask_and_others_by_name() {
        let origins = Origins::new(["https://chat.example.org"]).unwrap();
        for here in ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", "https://app.localhost"] {
            assert!(origins.admit(here), "{here}");
        }
        assert!(origins.admit("https://Chat.example.org"));
        for other in ["https://example.org", "http://chat.example.org", "http://localhost.example.org", "null", ""] {
            assert!(!origins.admit(other), "{other}");
        }
        assert!(Origins::new(["*"]).unwrap().admit("https://anywhere.example"));
        for wrong in ["chat.example.org", "https://", "https://a/b", ""] {
            assert_eq!(Origins::new([wrong]), Err(NoOrigin(wrong.to_owned())));
        }
    }

    #[test]
    fn other_names_of_this_machine_are_somebody_elses() {
        let origins = Origins::new(["https://chat.example.org"]).unwrap();
        let check = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            origins.check_host(&headers).is_ok()
        };
        assert!(
            ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST", "chat.example.org"]
                .map(check)
                .iter()
                .all(|ok| *ok)
        );
        assert!(["evil.example:8080", "192.168.1.5", "localhost.evil.example", ""].map(check).iter().all(|ok| !ok));
        assert!(origins.check_host(&HeaderMap::new()).is_err());
    }
}

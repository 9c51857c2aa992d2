//! A user takes offers only from who was asked, for what was asked.

use std::sync::Arc;

use tensorlink_node::ports::{Net, Protocol};
use tensorlink_node::wire::encode;
use tensorlink_node::wire::rpc::Response;
use tensorlink_types::B256;
use tensorlink_types::abi::Offer;
use tensorlink_user::hire::Wanted;
use tensorlink_user::{HireError, User};
use tokio_util::sync::CancellationToken;

use crate::support::{self, CONTRACTS, Hub, JOB, MemoryChain, MemoryNet, identity, job_view, lane};

/// What the user makes of an offer that worker 1 signs with the key of `signer`.
async fn offered(signer: u8, change: impl FnOnce(&mut Offer)) -> Result<Offer, HireError> {
    let worker = identity(1).address();
    let hub = Arc::new(Hub::default());
    let chain = MemoryChain::new(job_view(1, 2), &[worker], &[]);
    let folder = tempfile::tempdir().unwrap();
    let ports = support::ports(9, chain, Arc::default(), hub.clone(), folder.path());
    let shutdown = CancellationToken::new();
    let user = User::start(ports, shutdown.clone()).await.unwrap();
    let mut requests = MemoryNet { own: worker, hub }.serve(Protocol::Rpc).await.unwrap();
    let mut offer = Offer { job: JOB.0, worker, pricePerInterval: 7, ..Offer::default() };
    change(&mut offer);
    let signature = identity(signer).sign(CONTRACTS.offer(&offer)).unwrap().to_vec();
    tokio::spawn(async move {
        let request = requests.recv().await.unwrap();
        let answer = encode("response", &Response::Offer { offer, signature }).unwrap();
        request.reply.send(answer).unwrap();
    });
    let result = user.collect_offers(B256::ZERO, &[Wanted { lane: lane(0), worker, limit: 7 }], |_, _| None).await;
    shutdown.cancel();
    result.map(|mut offers| offers.remove(0).1)
}

#[tokio::test]
async fn the_workers_own_offer_for_the_lane_is_taken() {
    assert_eq!(offered(1, |_| {}).await.unwrap().pricePerInterval, 7);
}

#[tokio::test]
async fn an_offer_above_the_advertised_price_is_refused() {
    assert_eq!(offered(1, |o| o.pricePerInterval = 6).await.unwrap().pricePerInterval, 6);
    assert!(matches!(offered(1, |o| o.pricePerInterval = 8).await, Err(HireError::Price { limit: 7, asked: 8, .. })));
}

#[tokio::test]
async fn an_offer_signed_by_another_is_refused() {
    assert!(matches!(offered(2, |_| {}).await, Err(HireError::Signature { .. })));
}

#[tokio::test]
async fn an_offer_for_something_else_is_refused() {
    assert!(matches!(offered(1, |o| o.stage = 1).await, Err(HireError::Mismatch { .. })));
    assert!(matches!(offered(1, |o| o.terms = B256::repeat_byte(1)).await, Err(HireError::Mismatch { .. })));
    assert!(matches!(offered(1, |o| o.job = 2).await, Err(HireError::Mismatch { .. })));
    assert!(matches!(offered(1, |o| o.replica = 1).await, Err(HireError::Mismatch { .. })));
    assert!(matches!(offered(2, |o| o.worker = identity(2).address()).await, Err(HireError::Mismatch { .. })));
}

/// What a lane comes to whose first worker refuses, where a second is there to be asked in its place.
#[tokio::test]
async fn where_one_refuses_the_next_is_asked() {
    let workers = [1, 2].map(|key| identity(key).address());
    let hub = Arc::new(Hub::default());
    let chain = MemoryChain::new(job_view(1, 2), &workers[..1], &[]);
    let folder = tempfile::tempdir().unwrap();
    let ports = support::ports(9, chain, Arc::default(), hub.clone(), folder.path());
    let shutdown = CancellationToken::new();
    let user = User::start(ports, shutdown.clone()).await.unwrap();
    for (key, worker) in (1..).zip(workers) {
        let mut requests = MemoryNet { own: worker, hub: hub.clone() }.serve(Protocol::Rpc).await.unwrap();
        tokio::spawn(async move {
            while let Some(request) = requests.recv().await {
                let answer = if key == 1 {
                    Response::Refused("the shard needs 2 bytes, this node lends 1".into())
                } else {
                    let offer = Offer { job: JOB.0, worker, pricePerInterval: 7, ..Offer::default() };
                    let signature = identity(key).sign(CONTRACTS.offer(&offer)).unwrap().to_vec();
                    Response::Offer { offer, signature }
                };
                request.reply.send(encode("response", &answer).unwrap()).unwrap();
            }
        });
    }
    let wanted = |worker| Wanted { lane: lane(0), worker, limit: 7 };
    let mut refused = Vec::new();
    let first = [wanted(workers[0])];
    let offers = user.collect_offers(B256::ZERO, &first, |before, error| {
        refused.push((before.worker, error.to_string()));
        Some(wanted(workers[1]))
    });
    let offers = offers.await.unwrap();
    assert_eq!(offers.iter().map(|(wanted, ..)| wanted.worker).collect::<Vec<_>>(), workers[1..]);
    assert!(refused.len() == 1 && refused[0].0 == workers[0], "{refused:?}");
    assert!(refused[0].1.contains("this node lends 1"), "{refused:?}");
    let nobody = user.collect_offers(B256::ZERO, &first, |_, _| None).await;
    assert!(matches!(nobody, Err(HireError::Declined { .. })), "{nobody:?}");
    shutdown.cancel();
}

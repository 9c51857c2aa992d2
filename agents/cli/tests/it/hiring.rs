//! Workers that are hired have at risk what lanes of their price must have (rule P-30); and those that serve are
//! compared with others.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tensorlink::commands::hiring::{Aim, DISK, HireArgs, Hiring, Token};
use tensorlink::config::Config;
use tensorlink::node::Node;
use tensorlink_model::Setting;
use tensorlink_node::Speed;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{Event, Net};
use tensorlink_node::price::Prices;
use tensorlink_node::speed::Measured;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_placement::model::{Cost, Kind, Layer, ModelProfile};
use tensorlink_placement::node::Precision;
use tensorlink_types::{Address, U256};
use tensorlink_user::User;
use tensorlink_user::hire::Asked;
use tensorlink_user::placing::Work;
use tokio_util::sync::CancellationToken;

use crate::support::{Hasty, Hub, MemoryChain, MemoryNet, SNO, identity, job_view};

/// What each worker has bonded, wei: the dearer, the more.
const BONDED: [u128; 3] = [100, 800, 900];
/// What each asks for a unit of work, wei.
const PRICES: [u128; 3] = [100, 200, 300];
/// Intervals whose price a lane has at risk.
const AT_RISK: u32 = 3;
/// What was thought to be enough, wei of SNO.
const SAID: u128 = 50;

fn worker(n: usize) -> Address {
    identity(n as u8 + 1).address()
}

/// A user that knows three staked workers.
struct World {
    node: Node,
    user: Arc<User>,
    config: Config,
    end: CancellationToken,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let advert = |sno: u128| {
            let (prices, engine) = (Prices { sno, eth: Some(sno) }, String::new());
            WorkerAdvert { memory: 1, disk: 1, speed: Speed::LEAST, free_lanes: 1, prices, engine }
        };
        Self::of(PRICES.map(advert)).await
    }

    /// Of workers that advertise so.
    async fn of(adverts: [WorkerAdvert; 3]) -> Self {
        let (hub, chain) = (Arc::<Hub>::default(), MemoryChain::new(job_view(1, 2), &[], &[]));
        chain.with(|ledger| {
            ledger.follows = true;
            ledger.told = Some(Vec::new());
            ledger.stakes = (0..).map(worker).zip(BONDED).collect();
            for account in (0..BONDED.len()).map(worker) {
                ledger.tell(Event::Staked { account, role: Role::Worker, amount: U256::from(1) });
            }
        });
        let (folder, end) = (tempfile::tempdir().unwrap(), CancellationToken::new());
        let listen = vec!["/ip4/127.0.0.1/tcp/0".to_owned()];
        let config = Config { data_dir: folder.path().to_owned(), listen, ..Config::defaults().unwrap() };
        let mut node = Node::join(&config, (identity(9), chain), DISK, &end).await.unwrap();
        node.ports.clock = Arc::new(Hasty);
        node.ports.net = Arc::new(MemoryNet { own: identity(9).address(), hub: hub.clone() });
        let user = User::start(node.ports.clone(), end.clone()).await.unwrap();
        let world = Self { node, user, config, end, _folder: folder };
        world.meet(&hub, &adverts).await;
        world
    }

    /// Has all workers advertise until the user knows them.
    async fn meet(&self, hub: &Arc<Hub>, adverts: &[WorkerAdvert]) {
        let meeting = async {
            while self.user.ranked(BONDED.len(), Asked::of_any_tier(0, SNO)).await.is_err() {
                for (n, advert) in adverts.iter().enumerate() {
                    let net = MemoryNet { own: worker(n), hub: hub.clone() };
                    net.publish(WORKERS, encode("advert", advert).unwrap()).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), meeting).await.unwrap();
    }

    /// Who hires one of them for a training, and how.
    async fn hiring<'a>(&self, args: &'a HireArgs) -> Hiring<'a> {
        let mut hiring = Hiring::with(self.node.clone(), self.user.clone(), args).await.unwrap();
        hiring.parameters.min_stake_intervals = AT_RISK;
        if args.token == Token::Sno {
            // The chain in memory has no contract of it.
            hiring.asked.token = SNO;
        }
        hiring.look_for(1, &self.config, &self.end).await.unwrap();
        hiring
    }

    /// Chooses the cheapest that has what is asked for, and what it asks.
    async fn cheapest(&self, hiring: &mut Hiring<'_>) -> (Address, Vec<u128>) {
        hiring.fit_programs(&self.end, vec![1]).await.unwrap();
        let prices = hiring.prices(|_, price| Some(price)).unwrap();
        (hiring.candidates[0].address, prices)
    }
}

fn args(token: Token) -> HireArgs {
    // In SNO, of which the last digit is a wei.
    let worker_stake = format!("0.{SAID:018}");
    HireArgs { deposit: "1".to_owned(), worker_stake, token, patience: 0, ..HireArgs::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_have_the_stake_are_looked_for_where_lanes_cost_more() {
    let (world, args) = (World::new().await, args(Token::Sno));
    let mut hiring = world.hiring(&args).await;
    let (chosen, prices) = world.cheapest(&mut hiring).await;
    assert_eq!((chosen, prices.as_slice(), hiring.asked.stake), (worker(0), &PRICES[..1], SAID));
    let refused = hiring.afford(&prices, 1, 1).unwrap_err().to_string();
    assert!(refused.contains("raise --worker-stake"), "{refused}");

    // The cheapest has less than three times its price; and who has more is dearer.
    assert!(hiring.raise_stake(&prices).await.unwrap());
    assert_eq!((hiring.asked.stake, hiring.candidates.len()), (300, 0), "nobody is chosen yet");
    let (chosen, prices) = world.cheapest(&mut hiring).await;
    assert_eq!((chosen, prices.as_slice()), (worker(1), &PRICES[1..2]));
    assert!(hiring.raise_stake(&prices).await.unwrap());
    assert_eq!(hiring.asked.stake, 600);
    assert_eq!(world.cheapest(&mut hiring).await, (worker(1), prices.clone()), "it has that, too");
    assert!(!hiring.raise_stake(&prices).await.unwrap(), "that is enough");
    assert_eq!((hiring.asked.stake, hiring.candidates.len()), (600, 1), "who was chosen stays");
    hiring.afford(&prices, 1, 1).unwrap();

    // Nobody has so much.
    let few = hiring.raise_stake(&[PRICES[2] + 1]).await.unwrap_err().to_string();
    assert!(few.contains("0 staked workers"), "{few}");
    // Another look is for workers that have what was said.
    hiring.look_for(1, &world.config, &world.end).await.unwrap();
    assert_eq!(world.cheapest(&mut hiring).await.0, worker(0));
    assert_eq!(hiring.asked.stake, SAID);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_jobs_pay_in_eth_the_price_tells_no_stake() {
    let (world, args) = (World::new().await, args(Token::Eth));
    let mut hiring = world.hiring(&args).await;
    assert_eq!(world.cheapest(&mut hiring).await.0, worker(0));
    assert!(!hiring.raise_stake(&[u128::MAX]).await.unwrap(), "the contracts know no price of ETH");
    assert_eq!((hiring.asked.stake, hiring.candidates[0].address), (SAID, worker(0)));
    // Whoever is challenged may have to pay the bond all the same.
    hiring.parameters.dispute_bond = BONDED[0] + 1;
    assert!(hiring.raise_stake(&[1]).await.unwrap());
    assert_eq!(world.cheapest(&mut hiring).await.0, worker(1));
}

/// A worker that says it does so many billion multiply-adds a second, with memory for so many bytes.
fn says(billions: u64, memory: u64) -> WorkerAdvert {
    let rate = billions * 1_000_000_000;
    let speed = Measured { fast: rate, standard: rate, reference: rate, memory: 1_000_000_000 }.try_into().unwrap();
    let (prices, engine) = (Prices { sno: 1, eth: None }, String::new());
    WorkerAdvert { memory, disk: 10, speed, free_lanes: 1, prices, engine }
}

/// Two stages of a hundred billion multiply-adds a token, and ten bytes each.
fn two_stages() -> Work {
    let cost = Cost { macs: 1e11, reads: 1.0, state: 0.0, activations: 1.0 };
    let layer = Layer { weights: 10.0, decode: cost, prefill: cost, training: cost };
    let model =
        ModelProfile { name: "two".to_owned(), precision: Precision::Int16, micro_batch: 1.0, layers: vec![layer; 2] };
    Work { model, kind: Kind::Decode, setting: Setting::Standard, beside: 0, together: 1 }
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_faster_where_the_work_would_be_placed_on_them_now() {
    let serving = [worker(0), worker(1)];
    let args = |objective| HireArgs { objective, ..args(Token::Sno) };
    let found = async |adverts: [WorkerAdvert; 3], aim: Aim, serving: &[Address]| {
        let (world, args) = (World::of(adverts).await, args(aim));
        world.hiring(&args).await.faster(&two_stages(), serving).await.unwrap()
    };
    // A token takes 100 s and 25 s, and the way of all is as long.
    let slow = [says(1, 10), says(4, 10), says(4, 10)];
    let faster = found(slow.clone(), Aim::Latency, &serving).await.unwrap();
    assert_eq!(faster.without, [worker(0)]);
    assert!((2.3..2.5).contains(&faster.times), "125 s in place of 50 s, and the way: {}", faster.times);
    let faster = found(slow.clone(), Aim::Throughput, &serving).await.unwrap();
    assert!((3.8..=4.0).contains(&faster.times), "100 s in place of 25 s: {}", faster.times);

    // Whoever has no memory for a stage serves none. Those that serve need none for what they have already.
    let full = [says(1, 10), says(4, 10), says(4, 9)];
    let same = found(full, Aim::Latency, &serving).await.unwrap();
    assert!(same.without.is_empty() && (0.99..1.01).contains(&same.times), "{same:?}");
    let busy = [says(1, 0), says(4, 10), says(4, 10)];
    assert_eq!(found(busy, Aim::Latency, &serving).await.unwrap().without, [worker(0)]);

    // Twice as much is asked for the one stage, and for the other as before.
    let mut dear = slow.clone();
    dear[2].prices.sno = 2;
    assert_eq!(found(dear, Aim::Latency, &serving).await.unwrap().dearer, 1.5);
    assert_eq!(found(slow.clone(), Aim::Latency, &serving).await.unwrap().dearer, 1.0);

    assert_eq!(found(slow.clone(), Aim::Latency, &[worker(0), worker(3)]).await, None, "one has said nothing");
    assert_eq!(found(slow, Aim::Latency, &serving[..1]).await, None, "a lane has nobody");
}

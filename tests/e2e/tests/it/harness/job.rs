//! A small job, and what came of it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tensorlink_node::ports::chain::{Event, EventAt, Fault};
use tensorlink_types::abi::{Claim, JobTerms};
use tensorlink_types::{Address, ClaimId, JobKey, U256};

use super::network::{Network, USER};
use super::sno;
use super::verdict::Slash;

/// Name of the process that posts and watches.
pub(super) const NAME: &str = "user";

/// What is learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    /// Handwritten digits, by a small perceptron.
    Digits,
    /// The beginning of the King James text, by a small decoder.
    KingJames,
    /// The same, three sequences a step.
    ThreeSequences,
    /// The same, so fast that its weights leave their types.
    TooFast,
    /// The same, a fifth of it dropped.
    Dropout,
    /// The same, by the decoder that [`Self::KingJames`] left.
    TrainedOn,
    /// The same, by adapters beside its weights.
    Adapters,
    /// Which verses begin with "And", by a small encoder.
    Beginnings,
}

impl Subject {
    /// The model file.
    pub(crate) fn model(self, steps: u32) -> Value {
        match self {
            Self::Digits => Model { steps }.json(),
            Self::KingJames | Self::ThreeSequences | Self::TooFast | Self::Dropout => json!({
                "name": "small king james",
                "decoder": { "width": 16, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 32, "context": 16 },
                "optimizer": { "learning_rate": if self == Self::TooFast { 0.9 } else { 0.01 }, "warmup": 2, "weight_decay": 0.1, "clip": 1.0 },
                "sequences": if self == Self::ThreeSequences { 3 } else { 2 },
                "steps": steps,
                "operand_bits": 8,
                "dropout": if self == Self::Dropout { 0.2 } else { 0.0 },
                "seed": 7,
            }),
            Self::Beginnings => json!({
                "name": "beginnings",
                "encoder": { "width": 16, "layers": 2, "heads": 4, "hidden": 32, "context": 16 },
                // With twice the rate and half the sequences, one job key in ten leads through a plateau longer than
                // the job.
                "optimizer": { "learning_rate": 0.005, "warmup": 2, "weight_decay": 0.01, "clip": 1.0 },
                "sequences": 16,
                "steps": steps,
                "operand_bits": 8,
                "seed": 7,
            }),
            Self::TrainedOn | Self::Adapters => json!({
                "name": "more king james",
                "from": {
                    "folder": Self::KingJames.out(),
                    "context": 16,
                    "lora": (self == Self::Adapters).then(|| json!({ "rank": 4, "alpha": 8 })),
                },
                "optimizer": { "learning_rate": 0.01, "warmup": 2, "weight_decay": 0.1, "clip": 1.0 },
                // With 2, adapters may come out where they began, by some job keys.
                "sequences": 8,
                "steps": steps,
                "operand_bits": 8,
                "seed": 8,
            }),
        }
    }

    /// Where what was learned is written to.
    const fn out(self) -> &'static str {
        match self {
            Self::TrainedOn => "trained-on",
            Self::Adapters => "adapters",
            _ => "trained",
        }
    }

    /// What it is learned from; a text is written where the network has its files.
    fn data(self, network: &Network) -> PathBuf {
        match self {
            Self::Digits => Job::data(),
            Self::Beginnings => {
                let text = king_james(250_000);
                let (and, other): (Vec<&str>, Vec<&str>) = text.lines().partition(|verse| verse.starts_with("And "));
                // As many of either.
                let rows = and.iter().zip(other).map(|(and, other)| format!("\"{and}\",and\n\"{other}\",other\n"));
                let rows: String = rows.collect();
                let path = network.path("verses.csv");
                std::fs::write(&path, rows).unwrap();
                path
            }
            _ => {
                let path = network.path("text.txt");
                std::fs::write(&path, king_james(40_000)).unwrap();
                path
            }
        }
    }

    /// A little more than a guess would know, in percent.
    const fn least_known(self) -> f64 {
        match self {
            Self::Digits => 50.0,
            // Of two classes alike.
            Self::Beginnings => 70.0,
            _ => 22.0,
        }
    }
}

/// So many bytes of the King James text.
fn king_james(bytes: u64) -> String {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kjv-1100k.txt.gz");
    let mut text = String::new();
    let file = std::fs::File::open(packed).unwrap();
    flate2::read::GzDecoder::new(file).take(bytes).read_to_string(&mut text).unwrap();
    text
}

/// A perceptron for the digits; its steps are the job's length.
pub(crate) struct Model {
    pub(crate) steps: u32,
}

impl Model {
    pub(crate) fn json(&self) -> Value {
        json!({
            "name": "small digits",
            "layers": [
                { "kind": "linear", "out": 64 }, { "kind": "relu" },
                { "kind": "linear", "out": 32 }, { "kind": "relu" },
            ],
            "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
            "batch_size": 64,
            "micro_batches": 4,
            "steps": self.steps,
            "operand_bits": 8,
            "seed": 7,
        })
    }
}

/// What is posted.
pub(crate) struct Job {
    pub(crate) stages: u16,
    pub(crate) replicas: u16,
    pub(crate) steps: u32,
    pub(crate) steps_per_interval: u32,
    pub(crate) token: &'static str,
    pub(crate) subject: Subject,
    /// Seconds.
    pub(crate) challenge_window: u32,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            stages: 2,
            replicas: 1,
            steps: 60,
            steps_per_interval: 20,
            token: "sno",
            subject: Subject::Digits,
            challenge_window: 4,
        }
    }
}

impl Job {
    /// Of SNO or ETH.
    pub(crate) const DEPOSIT: &'static str = "10";
    /// SNO at risk for each worker, the default.
    pub(crate) const STAKE: &'static str = "1000";

    /// What it is trained on.
    pub(crate) fn data() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits.csv.gz")
    }

    pub(crate) fn deposit() -> U256 {
        sno(Self::DEPOSIT)
    }

    pub(crate) const fn lanes(&self) -> usize {
        self.stages as usize * self.replicas as usize
    }

    pub(crate) const fn intervals(&self) -> u32 {
        self.steps / self.steps_per_interval
    }

    /// Claims of all lanes.
    pub(crate) const fn claims(&self) -> usize {
        self.lanes() * self.intervals() as usize
    }

    /// Posts the job in the background and follows it, from the user's account.
    pub(crate) fn post(&self, network: &mut Network) {
        self.post_with(network, &[]);
    }

    /// The same with further arguments.
    pub(crate) fn post_with(&self, network: &mut Network, arguments: &[&str]) {
        let mut command = self.posting(network);
        command.args(arguments);
        network.spawn(NAME, command);
    }

    /// Posts the job in the background and follows it, through other jobs where a worker is convicted, or silent for so
    /// many seconds.
    pub(crate) fn post_to_go_on(&self, network: &mut Network, borne: &str) {
        let command = self.posting_to_go_on(network, borne);
        network.spawn(NAME, command);
    }

    /// The command that posts and follows it, and no other job.
    pub(crate) fn posting(&self, network: &Network) -> Command {
        self.posting_to_go_on(network, "0")
    }

    /// The command that goes on in other jobs.
    pub(crate) fn posting_to_go_on(&self, network: &Network, borne: &str) -> Command {
        let (model, report) = (network.path("model.json"), network.path("report.json"));
        std::fs::write(&model, self.subject.model(self.steps).to_string()).unwrap();
        let data = self.subject.data(network);
        let mut command = network.command(USER, &["job", "post", "--watch", "--deposit", Self::DEPOSIT]);
        command.args(["--stages", &self.stages.to_string(), "--replicas", &self.replicas.to_string()]);
        command.args(["--steps-per-interval", &self.steps_per_interval.to_string(), "--token", self.token]);
        command.args(["--challenge-window", &self.challenge_window.to_string()]);
        command.arg("--model").arg(model).arg("--data").arg(data).arg("--report").arg(report);
        command.args(["--failover", borne]);
        command
    }

    /// Trains by a job file, in the background, and writes the model to the folder that is given back. `early` ends it,
    /// in the file's words.
    pub(crate) fn train(&self, network: &mut Network, early: &str) -> PathBuf {
        let (job, out) = (network.path("job.toml"), self.subject.out());
        std::fs::write(network.path("model.json"), self.subject.model(self.steps).to_string()).unwrap();
        let data = self.subject.data(network);
        let file = format!(
            "model = \"model.json\"\ndata = {data:?}\nout = {out:?}\nsteps_per_interval = {}\nfailover = 0\n{early}\n[hire]\nstages = {}\n\
             replicas = {}\ndeposit = \"{}\"\ntoken = \"{}\"\nchallenge_window = {}\n",
            self.steps_per_interval,
            self.stages,
            self.replicas,
            Self::DEPOSIT,
            self.token,
            self.challenge_window
        );
        std::fs::write(&job, file).unwrap();
        let mut command = network.command(USER, &["train"]);
        command.arg(job).arg("--report").arg(network.path("report.json"));
        network.spawn(NAME, command);
        network.path(out)
    }

    /// Has the user follow the only job again.
    pub(crate) fn watch(network: &mut Network) {
        let command = Self::watching(network);
        network.spawn(NAME, command);
    }

    fn watching(network: &Network) -> Command {
        let mut command = network.command(USER, &["job", "watch", "1", "--report"]);
        command.arg(network.path("report.json"));
        command
    }

    /// Cuts the user off while it follows the only job, which trains a language model into `out`, and has it follow
    /// that job again.
    pub(crate) async fn taken_up_again(&self, network: &mut Network, out: &Path, limit: Duration) {
        network.said(NAME, &format!("/{} ", self.steps), limit).await;
        network.cut(NAME);
        let mut command = Self::watching(network);
        command.arg("--out").arg(out);
        network.spawn(NAME, command);
    }

    /// Waits for the job to be settled and reported. Who was convicted in it, or accused falsely, is printed as a row
    /// of a table, under the test's name.
    pub(crate) async fn settled(&self, network: &mut Network, limit: Duration) -> Report {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        self.settled_in(&test, network, limit).await
    }

    /// The same under a scenario's name.
    pub(crate) async fn settled_in(&self, scenario: &str, network: &mut Network, limit: Duration) -> Report {
        network.ended(NAME, limit).await;
        let text = std::fs::read(network.path("report.json")).unwrap();
        let report = Report { json: serde_json::from_slice(&text).unwrap(), events: network.events().await };
        super::documented::check(&["job", "watch"].map(str::to_owned), &report.json);
        for row in report.rows(network).await {
            eprintln!("| {scenario} | {row} |");
        }
        report
    }
}

/// What a job came to: by the user's report, and by the chain's events, which must agree.
pub(crate) struct Report {
    pub(crate) json: Value,
    pub(crate) events: Vec<EventAt>,
}

impl Report {
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.json[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {}", self.json))
    }

    pub(crate) fn pick<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.events.iter().filter_map(|at| pick(&at.event)).collect()
    }

    /// Terms of all jobs, in the order in which they were posted.
    pub(crate) fn posted(&self) -> Vec<JobTerms> {
        self.pick(|event| match event {
            Event::JobPosted { terms, .. } => Some(terms.clone()),
            _ => None,
        })
    }

    /// Keys of all jobs, in the order in which they started.
    pub(crate) fn keys(&self) -> Vec<JobKey> {
        self.pick(|event| match event {
            Event::JobStarted { job_key, .. } => Some(*job_key),
            _ => None,
        })
    }

    /// All claims that were committed.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.pick(|event| match event {
            Event::ClaimCommitted { claim, .. } => Some(claim.clone()),
            _ => None,
        })
    }

    /// Claims paid and amount, by worker.
    pub(crate) fn paid(&self) -> BTreeMap<Address, (u32, U256)> {
        let paid = self.pick(|event| match event {
            Event::Paid { worker, units, amount, .. } => Some((*worker, *units, *amount)),
            _ => None,
        });
        let mut sums = BTreeMap::new();
        for (worker, claims, amount) in paid {
            let sum: &mut (u32, U256) = sums.entry(worker).or_default();
            *sum = (sum.0 + claims, sum.1 + amount);
        }
        sums
    }

    /// Price of an interval, by worker.
    pub(crate) fn prices(&self) -> BTreeMap<Address, U256> {
        let offers = self.pick(|event| match event {
            Event::JobAccepted { offers, .. } => Some(offers.clone()),
            _ => None,
        });
        offers.into_iter().flatten().map(|offer| (offer.worker, U256::from(offer.pricePerInterval))).collect()
    }

    pub(crate) fn refund(&self) -> U256 {
        let refunds = self.pick(|event| match event {
            Event::JobSettled { refund, .. } => Some(*refund),
            _ => None,
        });
        assert_eq!(refunds.len(), 1, "settled once");
        refunds[0]
    }

    /// Answers that were revealed: about which claim, by whom, for which fee.
    pub(crate) fn audits(&self) -> Vec<(ClaimId, Address, U256)> {
        self.pick(|event| match event {
            Event::AuditRevealed { claim, auditor, fee, .. } => Some((*claim, *auditor, *fee)),
            _ => None,
        })
    }

    /// Who was convicted, by whom, of what.
    pub(crate) fn convicted(&self) -> Vec<(Address, Address, Fault)> {
        self.pick(|event| match event {
            Event::Convicted { worker, auditor, fault, .. } => Some((*worker, *auditor, *fault)),
            _ => None,
        })
    }

    pub(crate) fn slashed(&self) -> Vec<(Address, Slash)> {
        self.pick(|event| match event {
            Event::Slashed { account, amount, bounty, shared, harm, burned } => Some((
                *account,
                Slash { amount: *amount, bounty: *bounty, shared: *shared, harm: *harm, burned: *burned },
            )),
            _ => None,
        })
    }

    /// Every claim was committed once, every payment is for final claims at the offered price, and no wei is lost.
    pub(crate) fn assert_accounts(&self) {
        let claims: Vec<_> = self.claims().iter().map(|claim| (claim.lane(), claim.interval)).collect();
        let mut unique = claims.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), claims.len(), "a claim was committed twice: {claims:?}");
        let prices = self.prices();
        let mut spent = self.refund();
        for (worker, (claims, amount)) in self.paid() {
            assert_eq!(amount, prices[&worker] * U256::from(claims), "{worker} was paid for {claims} claims");
            spent += amount;
        }
        spent += self.audits().iter().map(|(_, _, fee)| *fee).sum::<U256>();
        assert_eq!(spent, Job::deposit(), "payments, fees of audits and refund are the deposit");
    }

    /// The job finished, and the model learned more than a guess would know.
    pub(crate) fn assert_finished(&self, job: &Job) {
        self.assert_accounts();
        assert_eq!(self.number("claims_committed"), job.claims() as f64);
        assert_eq!(self.number("claims_final"), job.claims() as f64);
        assert_eq!(self.number("workers_paid"), job.lanes() as f64);
        assert!(self.paid().values().all(|(claims, _)| *claims == job.intervals()), "{:?}", self.paid());
        assert!(self.slashed().is_empty(), "{:?}", self.slashed());
        assert!(self.number("held_out_percent") > job.subject.least_known(), "{}", self.json);
        assert!(self.number("held_out_rows") >= 100.0, "{}", self.json);
    }
}

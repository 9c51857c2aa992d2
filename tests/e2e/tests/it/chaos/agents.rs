//! The agents of a network, each behind wires of its own to its endpoint and to its peers, kept running as an
//! operator's service manager would: what ends is started again.

use std::process::Command;
use std::time::Duration;

use tensorlink_node::ports::Chain;
use tokio::time::Instant;

use super::deepest;
use super::schedule::Whom;
use super::wire::{Mood, Weather, Wire};
use crate::harness::{FIRST_WORKER, Job, LOOK, Network, Process, Served, USER, VALIDATOR};

/// Before what ended by itself is started again.
const RESPITE: Duration = Duration::from_secs(1);
/// From its start to its first listening, where nothing is wrong.
const START: Duration = Duration::from_secs(180);

/// Number of the only job.
pub(super) const JOB: u64 = 1;

/// Lines that are shown of whoever ended.
const SHOWN: usize = 30;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Worker,
    Validator,
    User,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Not before then.
    Away(Instant),
    Starting,
    Listening,
    /// Its work is done: a user whose job is settled, or who has posted what it will serve.
    Done,
}

/// What the user does.
pub(super) enum Errand {
    /// It posts a training job and watches it.
    Training(Job),
    /// It posts a serving job and opens a gateway to it, behind a wire that stays when the gateway does not.
    Serving(Served, Wire),
}

impl Errand {
    const fn lanes(&self) -> usize {
        match self {
            Self::Training(job) => job.lanes(),
            Self::Serving(served, _) => served.shape.stages as usize * served.shape.replicas as usize,
        }
    }
}

pub(super) struct Agent {
    pub(super) name: String,
    part: Part,
    account: usize,
    process: Option<Process>,
    stage: Stage,
    starts: u32,
    /// As its peers know it.
    peer: Option<String>,
    endpoint: Wire,
    pub(super) peers: Wire,
}

pub(super) struct Agents {
    pub(super) all: Vec<Agent>,
    errand: Errand,
    /// Whether the user has seen its job start.
    pub(super) posted: bool,
    /// Who ended although nobody killed it, after it had come up, and what it said last.
    fallen: Vec<String>,
}

impl Agents {
    /// A worker for each lane of the job, a validator and the job's user; nobody runs yet.
    pub(super) async fn new(network: &Network, errand: Errand, seed: u64) -> Self {
        let workers =
            (0..errand.lanes()).map(|worker| (Part::Worker, FIRST_WORKER + worker, format!("worker-{worker}")));
        let others = [(Part::Validator, VALIDATOR, "validator".to_owned()), (Part::User, USER, "user".to_owned())];
        let mut all = Vec::new();
        for (part, account, name) in workers.chain(others) {
            let endpoint = Wire::new(Weather::FAIR, seed).await;
            endpoint.lead(network.port());
            let peers = Wire::new(Weather::FAIR, seed.wrapping_add(account as u64)).await;
            let (process, stage) = (None, Stage::Away(Instant::now()));
            all.push(Agent { name, part, account, process, stage, starts: 0, peer: None, endpoint, peers });
        }
        Self { all, errand, posted: false, fallen: Vec::new() }
    }

    /// Starts all that can be: the validator, whom the others join the network through, the workers, and the user.
    pub(super) async fn start(&mut self, network: &Network) {
        let head = async || network.chain().head().await.unwrap().number;
        let confirmed = head().await + deepest();
        for part in [Part::Validator, Part::Worker, Part::User] {
            // Until then stakes do not count, and a user finds nobody.
            while part == Part::User && head().await < confirmed {
                tokio::time::sleep(LOOK).await;
            }
            let parts: Vec<usize> = (0..self.all.len()).filter(|agent| self.all[*agent].part == part).collect();
            for agent in &parts {
                self.begin(network, *agent);
            }
            let started = Instant::now();
            while parts.iter().any(|agent| self.all[*agent].stage != Stage::Listening) {
                assert!(started.elapsed() < START, "{part:?} does not listen within {START:?}");
                self.tend(network);
                assert!(self.all.iter().all(|agent| agent.starts <= 1), "an agent does not start");
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    fn command(&self, network: &Network, agent: &Agent) -> Command {
        let mut command = match agent.part {
            Part::Worker => {
                let arguments = ["-vv", "worker", "run", "--memory", "256MiB", "--device", "cpu", "--price", "0.001"];
                network.command(agent.account, &arguments)
            }
            Part::Validator => network.command(agent.account, &["-vv", "validator", "run", "--rate", "1"]),
            Part::User => match &self.errand {
                Errand::Training(_) if self.posted => {
                    let mut command = network.command(agent.account, &["job", "watch", &JOB.to_string(), "--report"]);
                    command.arg(network.path("report.json"));
                    command
                }
                Errand::Training(job) => job.posting(network),
                Errand::Serving(served, _) if self.posted => served.gateway(network, JOB, "127.0.0.1:0"),
                Errand::Serving(served, _) => served.posting(network),
            },
        };
        if agent.part == Part::User {
            command.arg("-vv");
        }
        let others = self.all.iter().filter(|other| other.account != agent.account);
        let bootstrap: Vec<&str> = others.filter_map(|other| other.peer.as_deref()).collect();
        command
            .env("TENSORLINK_RPC", format!("ws://127.0.0.1:{}", agent.endpoint.port))
            .env("TENSORLINK_EXTERNAL", format!("/ip4/127.0.0.1/tcp/{}", agent.peers.port))
            .env("TENSORLINK_CONFIRMATIONS", deepest().to_string());
        if !bootstrap.is_empty() {
            command.env("TENSORLINK_BOOTSTRAP", bootstrap.join(","));
        }
        command
    }

    fn begin(&mut self, network: &Network, index: usize) {
        let command = self.command(network, &self.all[index]);
        let agent = &mut self.all[index];
        agent.process = Some(Process::spawn(&agent.name, command, &network.path("")));
        agent.stage = Stage::Starting;
        agent.starts += 1;
    }

    /// Looks after everybody: leads wires to who has come up, and starts again who ended.
    pub(super) fn tend(&mut self, network: &Network) {
        for index in 0..self.all.len() {
            let agent = &mut self.all[index];
            match agent.stage {
                Stage::Away(until) if Instant::now() >= until && agent.starts > 0 => self.begin(network, index),
                Stage::Away(_) | Stage::Done => {}
                Stage::Starting | Stage::Listening => {
                    if agent.stage == Stage::Starting {
                        agent.look();
                        if let (Part::User, true, Errand::Serving(_, front)) = (agent.part, self.posted, &self.errand) {
                            agent.look_for_gateway(front);
                        }
                    }
                    self.fallen.extend(agent.take_fall());
                }
            }
        }
    }

    /// Whether something is so within so much time; meanwhile everybody is looked after.
    pub(super) async fn see(
        &mut self,
        network: &Network,
        limit: Duration,
        mut is_so: impl AsyncFnMut(&Self) -> bool,
    ) -> bool {
        let began = Instant::now();
        while began.elapsed() < limit {
            self.tend(network);
            if is_so(self).await {
                return true;
            }
            tokio::time::sleep(LOOK).await;
        }
        false
    }

    /// The same of the user's work.
    pub(super) async fn see_done(&mut self, network: &Network, limit: Duration) -> bool {
        self.see(network, limit, async |agents| agents.is_done()).await
    }

    /// Ends an agent as a power cut would; false if it does not run.
    pub(super) fn kill(&mut self, index: usize, away: Duration) -> bool {
        let agent = &mut self.all[index];
        let Some(process) = agent.process.take() else { return false };
        process.cut();
        agent.stage = Stage::Away(Instant::now() + away);
        true
    }

    pub(super) fn set_endpoint(&self, whom: Whom, mood: Mood) {
        for (index, agent) in self.all.iter().enumerate() {
            if whom == Whom::All || whom == Whom::One(index) {
                agent.endpoint.set_mood(mood);
            }
        }
    }

    pub(super) fn set_weather(&self, weather: Weather) {
        self.all.iter().for_each(|agent| agent.peers.set_weather(weather));
    }

    /// Whether the user has seen its job through, and said so.
    fn is_done(&self) -> bool {
        self.all.iter().any(|agent| agent.stage == Stage::Done)
    }

    /// Has the user go on from the job that it posted.
    pub(super) fn go_on(&mut self) {
        self.posted = true;
        for agent in self.all.iter_mut().filter(|agent| agent.stage == Stage::Done) {
            agent.stage = Stage::Away(Instant::now());
        }
    }

    pub(super) fn assert_nobody_fell(&self) {
        assert!(self.fallen.is_empty(), "nobody killed these:\n{}", self.fallen.join("\n"));
    }

    /// Ends everybody as an operator would.
    pub(super) fn stop(&mut self) {
        for agent in &mut self.all {
            if let Some(process) = agent.process.take() {
                let (status, _) = process.stop();
                assert!(status.success(), "{} ended with {status}", agent.name);
            }
        }
    }
}

impl Agent {
    /// Leads the wire of its peers to where it listens, once it does.
    fn look(&mut self) {
        let Some(process) = &self.process else { return };
        let log = process.log();
        let told = log.lines().filter_map(|line| line.split_once("listening ")).map(|(_, told)| told);
        let address = told.clone().find_map(|told| told.split_once("/ip4/127.0.0.1/tcp/")).map(|(_, rest)| rest);
        let port = address.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        let Some(port) = port.and_then(|port| port.parse().ok()) else { return };
        self.peers.lead(port);
        // The line that names it comes a little later; a user is nobody's way into the network.
        let name = told.clone().find_map(|told| told.split_once("/p2p/")).map(|(_, name)| name.trim());
        if let Some(name) = name {
            self.peer = Some(format!("/ip4/127.0.0.1/tcp/{}/p2p/{name}", self.peers.port));
        }
        if name.is_some() || self.part == Part::User {
            self.stage = Stage::Listening;
        }
    }

    /// Leads a wire to where a gateway answers, without which it does not listen yet.
    fn look_for_gateway(&mut self, front: &Wire) {
        let log = self.process.as_ref().map(Process::log).unwrap_or_default();
        let url = log.split_once("\"url\":\"http://127.0.0.1:").map(|(_, rest)| rest);
        let port = url.and_then(|rest| rest.split('/').next()).and_then(|port| port.parse().ok());
        match port {
            Some(port) => front.lead(port),
            None => self.stage = Stage::Starting,
        }
    }

    /// If it ended: that it did, where it should not have.
    fn take_fall(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        let status = process.ended()?;
        let log = process.log();
        assert!(!log.contains("panicked at"), "{} panicked:\n{log}", self.name);
        self.process = None;
        if self.part == Part::User && status.success() {
            self.stage = Stage::Done;
            return None;
        }
        let was = self.stage;
        self.stage = Stage::Away(Instant::now() + RESPITE);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        // Who starts while its endpoint is away says so and ends: that is for the operator to see.
        (was == Stage::Listening).then(|| format!("{} ended with {status}:\n{last}", self.name))
    }
}

//! Lines of the list, as people and as machines read them.

use tensorlink_types::{JobId, Lane};

use super::*;
use crate::dispute::aside::{Data, Demand, Outcome, Penalty};
use crate::dispute::words::list::Row;

const LANE: Lane = Lane { job: JobId(3), stage: 1, replica: 0 };
/// Block and time.
const NOW: (u64, u64) = (125, COMMITTED + 30);

fn demand(outcome: Outcome) -> Demand {
    Demand {
        number: 2,
        of: Data::State,
        tensor: 6,
        claim: Some(ClaimId(root(0x40))),
        lane: LANE,
        interval: Some(1),
        holder: WORKER,
        demander: AUDITOR,
        outcome,
        sent: sent(0x53, 5, AUDITOR),
        ended: None,
    }
}

fn row(demand: &Demand) -> Row {
    Row::demand(demand, NOW, Some(WORKER))
}

#[test]
fn a_demand_says_of_what_it_is_and_what_came_of_it() {
    let text = |demand: &Demand| short(&row(demand).text());
    let open = demand(Outcome::Open { deadline: COMMITTED + 90, block: 140 });
    assert_eq!(
        text(&open),
        "demand    2    open: job 3 stage 1 replica 0 interval 1, worker WORKER, tensor 6 of its state, holder WORKER, demander AUDITOR, \
         the holder has 1 min and 15 blocks left; claim R40"
    );
    let late = demand(Outcome::Open { deadline: COMMITTED + 29, block: 125 });
    assert!(text(&late).ends_with("demander AUDITOR, the holder is late, and anybody can end it; claim R40"));
    let files = Demand { of: Data::Files, claim: None, interval: None, ..demand(Outcome::NotShown) };
    assert_eq!(
        text(&files),
        "demand    2    not shown, and convicted: job 3 stage 1 replica 0, worker WORKER, tensor 6 of its constants or initial state, \
         holder WORKER, demander AUDITOR"
    );
    for (of, outcome, words) in [
        (Data::SentToNext, Outcome::Shown, ["demand    2    shown: ", "of what it sent to the next stage, "]),
        (Data::SentToPrevious, Outcome::Lapsed, ["demand    2    lapsed: ", "of what it sent to the previous stage, "]),
    ] {
        let text = text(&Demand { of, ..demand(outcome) });
        assert!(text.starts_with(words[0]) && text.contains(words[1]), "{text}");
    }
}

#[test]
fn a_penalty_names_who_answered_wrong_also_about_what_is_not_known() {
    let penalty = Penalty {
        claim: ClaimId(root(0x40)),
        auditor: AUDITOR,
        accuser: WORKER,
        amount: wei("20"),
        sent: sent(0x54, 60, WORKER),
    };
    let known = Row::penalty(&penalty, Some(&dispute().claimed));
    assert_eq!(
        short(&known.text()),
        "penalty        job 3 stage 1 replica 0 interval 1, worker WORKER, auditor AUDITOR answered wrong, accuser WORKER, 20 SNO taken in \
         R54; claim R40"
    );
    let unknown = Row::penalty(&penalty, None);
    assert!(short(&unknown.text()).starts_with("penalty        receipt, auditor AUDITOR"));
}

#[test]
fn machines_read_what_a_row_is_and_how_it_stands() {
    let read = |row: &Row| serde_json::to_value(row).unwrap();
    let open = read(&row(&demand(Outcome::Open { deadline: COMMITTED + 90, block: 140 })));
    assert_eq!((&open["what"], &open["state"], &open["of"]), (&"demand".into(), &"open".into(), &"state".into()));
    assert_eq!((&open["job"], &open["interval"], &open["demand"]), (&3.into(), &1.into(), &2.into()));
    assert_eq!((&open["seconds_left"], &open["blocks_left"]), (&60.into(), &15.into()));
    assert_eq!(open["block"], 140);
    let files = read(&row(&Demand { claim: None, interval: None, ..demand(Outcome::NotShown) }));
    assert_eq!((&files["state"], &files["stage"]), (&"not_shown".into(), &1.into()));
    assert!(files["claim"].is_null() && files["seconds_left"].is_null());
    let convicted = convicted(Fault::Element, None);
    let conviction = read(&Row::conviction(&convicted.claimed, convicted.conviction.as_ref().unwrap()));
    assert_eq!((&conviction["what"], &conviction["claim"]), (&"conviction".into(), &root(0x40).to_string().into()));
    assert!(conviction["worker"].is_string());
}

/// It held another's state, and is not whose claim it is about.
#[test]
fn a_conviction_names_who_was_convicted() {
    let mut dispute = convicted(Fault::Withholding, None);
    let conviction = dispute.conviction.as_mut().unwrap();
    conviction.worker = USER;
    let text = short(&Row::conviction(&dispute.claimed, conviction).text());
    assert!(
        text.starts_with(
            "conviction     job 3 stage 1 replica 0 interval 1, worker USER, auditor AUDITOR, withholding, "
        ),
        "{text}"
    );
    assert_eq!(told(&dispute)[0], "Worker USER was convicted: it did not show data that it holds.");
}

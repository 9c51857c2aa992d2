//! The book: what is signed for, what is paid, and in which epoch, whatever happens in between.

use tensorlink_node::Journal;
use tensorlink_node::wire::rpc::Receipt;
use tensorlink_proof::commit::{Crossed, receipt, receipt_list};
use tensorlink_types::abi::Voucher;
use tensorlink_types::{B256, ClaimId, TensorRoot};
use tensorlink_worker::serving::book::{Book, EnterError, Entry, PayError, Progress, Signed};
use tensorlink_worker::serving::voucher::{Payer, VoucherError};

use crate::support::serving::user;
use crate::support::{CONTRACTS, lane};

/// A receipt of made-up tensors for a text of 10 tokens.
fn entry(text: u32) -> Entry {
    let root = |byte: u8| TensorRoot(B256::repeat_byte(byte));
    let crossed = Crossed { from_previous: root(text as u8), from_next: None, to_next: root(1) };
    let (claim, logs) = receipt(lane(0), text, &crossed);
    let receipt = Receipt { claim, logs: logs.roots(), tokens: 10, signature: vec![text as u8; 65] };
    Entry { receipt, inputs: format!("cid {}", text % 4) }
}

fn ids(texts: impl IntoIterator<Item = u32>) -> Vec<ClaimId> {
    texts.into_iter().map(|text| CONTRACTS.claim_id(&entry(text).receipt.claim)).collect()
}

fn signed(epoch: u32, tokens: u32, texts: impl IntoIterator<Item = u32>) -> Signed {
    after(epoch, (0, tokens), texts)
}

/// Of an epoch that begins at `before` tokens.
fn after(epoch: u32, (before, tokens): (u32, u32), texts: impl IntoIterator<Item = u32>) -> Signed {
    let receipts = receipt_list(&ids(texts)).root();
    let voucher = Voucher { job: 1, stage: 0, replica: 0, epoch, before, tokens, receipts };
    let signature = user().sign(CONTRACTS.voucher(&voucher)).unwrap().to_vec();
    Signed { voucher, signature }
}

struct Shelf(tempfile::TempDir);

impl Shelf {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// As after a kill: only what is on disk.
    fn open(&self) -> Book {
        let payer = Payer { lane: lane(0), user: user().address(), most: 1000, contracts: CONTRACTS };
        Book::open(Journal::open(self.0.path()).unwrap(), payer).unwrap()
    }
}

fn texts(book: &Book, epoch: u32) -> Vec<u32> {
    book.claims(epoch).unwrap().iter().map(|claim| claim.interval).collect()
}

#[test]
fn receipts_and_vouchers_survive_and_epochs_follow_each_other() {
    let shelf = Shelf::new();
    let book = shelf.open();
    for text in 0..4 {
        book.enter(entry(text)).unwrap();
    }
    assert_eq!((book.delivered(), book.owed()), (40, 40));
    book.pay(signed(1, 20, 0..2), 5).unwrap();
    let book = shelf.open();
    assert_eq!((book.delivered(), book.owed(), texts(&book, 1)), (40, 20, vec![0, 1, 2, 3]));
    book.pay(signed(1, 30, 0..3), 6).unwrap();
    assert_eq!(book.due(0), None, "its epoch goes on");

    // The first voucher of the second epoch ends the first, which keeps what its last voucher named.
    book.pay(after(2, (30, 40), 3..4), 7).unwrap();
    for book in [book, shelf.open()] {
        assert_eq!((texts(&book, 1), texts(&book, 2)), (vec![0, 1, 2], vec![3]));
        assert_eq!((texts(&book, 3), book.claims(4)), (vec![], None));
        assert_eq!((book.delivered(), book.owed()), (40, 0));
        assert_eq!(book.due(0), Some((1, signed(1, 30, 0..3))));
    }
    let book = shelf.open();
    book.enter(entry(4)).unwrap();
    book.end_epoch(8).unwrap();
    let book = shelf.open();
    assert_eq!((texts(&book, 2), texts(&book, 3)), (vec![3], vec![4]), "nobody signed for the fifth");
    assert_eq!((book.delivered(), book.owed()), (50, 10));
    book.mark(1, Progress::Sent).unwrap();
    assert_eq!(book.due(0).unwrap().0, 1, "a reorganisation undid it");
    assert_eq!(book.due(1).unwrap().0, 2);
    book.mark(1, Progress::Confirmed).unwrap();
    book.mark(1, Progress::Due).unwrap();
    assert_eq!(shelf.open().due(0).unwrap().0, 2, "one that is confirmed stays so");
    book.mark(2, Progress::Confirmed).unwrap();
    assert_eq!(shelf.open().due(0), None);
    book.end_epoch(9).unwrap();
    assert_eq!(texts(&book, 3), [4], "an epoch that nobody signed for goes on");
}

/// The contract redeems epochs one after another, each from the tokens of the one before: what cannot be redeemed is
/// not taken.
#[test]
fn an_epoch_begins_at_what_the_one_before_it_pays() {
    let shelf = Shelf::new();
    let book = shelf.open();
    (0..3).for_each(|text| drop(book.enter(entry(text)).unwrap()));
    let due = |signed: Signed| match book.pay(signed, 1) {
        Err(PayError::Voucher(VoucherError::Before { due, .. })) => due,
        other => panic!("{other:?}"),
    };
    assert_eq!(due(after(2, (0, 20), 0..2)), None, "the first has no voucher yet");
    book.end_epoch(1).unwrap();
    assert_eq!((texts(&book, 1), book.due(0)), (vec![0, 1, 2], None), "nor does it end without one");
    assert_eq!(due(after(1, (5, 20), 0..2)), Some(0));
    book.pay(signed(1, 20, 0..2), 1).unwrap();
    for before in [0, 19, 21] {
        assert_eq!(due(after(2, (before, 30), 2..3)), Some(20));
    }
    book.pay(after(2, (20, 30), 2..3), 2).unwrap();
    assert_eq!(due(after(2, (30, 40), 2..3)), Some(20));
    // Its texts may all have come to nothing.
    book.pay(after(3, (30, 30), 0..0), 3).unwrap();
    let book = shelf.open();
    assert_eq!(book.due(0).unwrap().0, 1);
    assert_eq!(book.due(1), Some((1, signed(1, 20, 0..2))), "not marked");
    (1..3).for_each(|epoch| book.mark(epoch, Progress::Confirmed).unwrap());
    book.end_epoch(4).unwrap();
    assert_eq!(book.due(2), Some((3, after(3, (30, 30), 0..0))));
}

#[test]
fn a_text_has_one_receipt() {
    let shelf = Shelf::new();
    let book = shelf.open();
    let first = book.enter(entry(1)).unwrap();
    let again = Entry { receipt: Receipt { signature: vec![9; 65], ..entry(1).receipt }, ..entry(1) };
    assert_eq!(book.enter(again).unwrap(), first, "the one that it got");
    let mut other = entry(2);
    other.receipt.claim.interval = 1;
    assert!(matches!(book.enter(other), Err(EnterError::OtherText(1))));
    assert_eq!(book.delivered(), 10);
    assert_eq!(book.get(ids([1])[0]).unwrap().receipt, first);
    assert_eq!(book.of_text(2), None);
}

#[test]
fn vouchers_that_do_not_fit_change_nothing() {
    let shelf = Shelf::new();
    let book = shelf.open();
    (0..3).for_each(|text| drop(book.enter(entry(text)).unwrap()));
    book.pay(signed(1, 20, 0..2), 1).unwrap();
    let refused = |signed: Signed| match book.pay(signed, 2) {
        Err(PayError::Voucher(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(signed(1, 19, 0..2)), VoucherError::Fewer { tokens: 19, paid: 20 }));
    assert!(matches!(refused(signed(1, 30, 0..1)), VoucherError::Receipts { .. }), "fewer receipts than before");
    assert!(matches!(refused(signed(1, 30, [0, 2, 1])), VoucherError::Receipts { .. }), "another order");
    assert!(matches!(refused(after(2, (20, 30), [1, 2])), VoucherError::Receipts { .. }), "of the epoch before");
    assert!(matches!(refused(signed(3, 30, 0..3)), VoucherError::Epoch { epoch: 3, open: 1 }));
    assert!(matches!(refused(signed(1, 1001, 0..3)), VoucherError::TooMany { .. }));
    let mut forged = signed(1, 30, 0..3);
    forged.voucher.tokens = 20;
    assert!(matches!(refused(forged), VoucherError::Signature(_)));
    assert_eq!((book.owed(), texts(&shelf.open(), 1)), (10, vec![0, 1, 2]));
    // More than was delivered is the user's own business.
    book.pay(signed(1, 500, 0..3), 3).unwrap();
    assert_eq!(book.owed(), 0);
}

#[test]
fn what_a_voucher_names_is_settled_and_what_it_does_not_pay_is_borne_up_to_what_was_paid() {
    let shelf = Shelf::new();
    let book = shelf.open();
    (0..3).for_each(|text| drop(book.enter(entry(text)).unwrap()));
    // Two texts came to nothing, says the user.
    book.pay(signed(1, 10, 0..3), 1).unwrap();
    assert_eq!((book.owed(), book.owed_with(1)), (10, 11), "20 lost, 10 of them borne");
    book.enter(entry(3)).unwrap();
    assert_eq!(book.owed(), 20);
    book.pay(signed(1, 20, 0..4), 2).unwrap();
    for book in [book, shelf.open()] {
        assert_eq!((book.delivered(), book.owed(), book.owed_with(5)), (40, 0, 5));
    }
    let book = shelf.open();
    book.pay(after(2, (20, 20), 0..0), 3).unwrap();
    assert_eq!(book.owed(), 0, "in the next epoch, too");
    book.pay(after(2, (20, 60), 0..0), 4).unwrap();
    book.enter(entry(4)).unwrap();
    assert_eq!((book.owed(), book.owed_with(60), book.owed_with(61)), (0, 0, 1), "paid ahead");
}

#[test]
fn epochs_are_kept_for_a_while_and_their_tensors_while_any_receipt_names_them() {
    let shelf = Shelf::new();
    let book = shelf.open();
    for epoch in 1..=7u32 {
        book.enter(entry(epoch)).unwrap();
        // All but the first are redeemed.
        (2..epoch.saturating_sub(1)).for_each(|over| book.mark(over, Progress::Confirmed).unwrap());
        book.pay(after(epoch, (10 * (epoch - 1), 10 * epoch), [epoch]), 100 * u64::from(epoch)).unwrap();
    }
    assert!(!book.stale(10_000, 50).0.contains(&1), "not redeemed");
    (1..=6).for_each(|epoch| book.mark(epoch, Progress::Confirmed).unwrap());
    // Epoch 1 ended when the voucher of epoch 2 came.
    assert!(book.stale(250, 50).0.is_empty(), "its receipts can be challenged");
    let (stale, inputs) = book.stale(251, 50);
    assert_eq!((stale, inputs.len()), (vec![1], 0), "receipt 5 names the same tensor");
    let (stale, inputs) = book.stale(10_000, 50);
    assert_eq!((stale.as_slice(), inputs.len()), (&[1, 2][..], 0), "the last four are kept");
    book.forget(&stale).unwrap();
    for book in [&book, &shelf.open()] {
        assert_eq!((book.claims(1), book.claims(2), texts(book, 3)), (None, None, vec![3]));
        assert_eq!((book.delivered(), book.owed(), book.of_text(1)), (70, 0, None));
    }
    assert_eq!(book.inputs().len(), 4);
    book.clear().unwrap();
    assert_eq!(std::fs::read_dir(shelf.0.path()).unwrap().count(), 0);
}

/// A user could sign for any number of epochs of nothing, for free, before one of all that it owes, and close the job:
/// no window would be long enough to redeem them all.
#[test]
fn no_epoch_is_begun_while_two_wait_to_be_redeemed() {
    let shelf = Shelf::new();
    let book = shelf.open();
    (1..=3).for_each(|epoch| book.pay(after(epoch, (0, 0), 0..0), 1).unwrap());
    book.enter(entry(0)).unwrap();
    let waits = |book: &Book| match book.pay(after(4, (0, 10), 0..1), 2) {
        Err(PayError::Voucher(VoucherError::Waiting { epoch: 4, waiting })) => waiting,
        other => panic!("{other:?}"),
    };
    assert_eq!(waits(&book), 2);
    book.mark(1, Progress::Sent).unwrap();
    assert_eq!(waits(&shelf.open()), 2, "a reorganisation can undo it");
    book.pay(after(3, (0, 10), 0..1), 3).unwrap();
    assert_eq!(book.owed(), 0, "what is owed is paid in the open one");
    book.mark(1, Progress::Confirmed).unwrap();
    book.enter(entry(1)).unwrap();
    book.pay(after(4, (10, 20), 1..2), 4).unwrap();
}

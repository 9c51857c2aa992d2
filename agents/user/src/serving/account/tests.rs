//! Accounts move by move.

use tensorlink_types::{B256, JobId};

use super::*;

const LONGEST: u32 = 1000;
const LANE: Lane = Lane { job: JobId(3), stage: 1, replica: 0 };

fn id(text: u32) -> ClaimId {
    ClaimId(B256::left_padding_from(&(text + 1).to_be_bytes()))
}

fn entered(texts: impl IntoIterator<Item = u32>) -> Account {
    let mut account = Account::new(LONGEST);
    texts.into_iter().for_each(|text| account.enter(text, id(text), 10));
    account
}

fn root(texts: impl IntoIterator<Item = u32>) -> B256 {
    receipt_list(&texts.into_iter().map(id).collect::<Vec<_>>()).root()
}

/// What the chain tells of a lane whose last epoch has the receipts of these texts.
fn chain(epoch: u32, tokens: u32, texts: impl IntoIterator<Item = u32>) -> RedeemedView {
    RedeemedView { epoch, tokens, at: 77, record: epoch_record(root(texts), 77) }
}

/// The same of an epoch that is over, whose list does not matter any more.
fn over(epoch: u32, tokens: u32) -> RedeemedView {
    chain(epoch, tokens, [])
}

#[test]
fn only_what_is_delivered_is_owed_and_in_the_workers_order() {
    let mut account = entered([4, 2, 7]);
    assert_eq!(account.due(LANE, false), None);
    account.finish(2);
    assert_eq!(account.due(LANE, false), None, "the text before it is under way");
    account.finish(4);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.epoch, voucher.tokens, voucher.receipts), (1, 20, root([4, 2])));
    assert_eq!((voucher.job, voucher.stage, voucher.replica), (3, 1, 0));
    account.taken(&voucher);
    assert_eq!((account.due(LANE, false), account.tokens()), (None, 30));
    account.withdraw(7);
    account.withdraw(2);
    assert_eq!((account.due(LANE, false), account.tokens()), (None, 20), "what is owed stays so");
    assert_eq!(account.latest(), Some(&voucher));
    account.enter(8, id(8), 5);
    account.finish(8);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (25, root([4, 2, 7, 8])), "listed, and not paid");
}

#[test]
fn the_workers_list_tells_what_was_lost_or_overtaken() {
    let mut account = entered([0, 1, 3]);
    account.finish(0);
    let first = account.due(LANE, false).unwrap();
    account.taken(&first);
    account.finish(3);
    account.finish(1);
    account.sync(&[(0, id(0)), (2, id(2)), (3, id(3)), (1, id(1)), (9, id(9))]);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (30, root([0, 2, 3, 1, 9])));
    account.enter(9, id(9), 10);
    account.finish(9);
    assert_eq!(account.due(LANE, false).unwrap().tokens, 40, "its answer came late");
}

#[test]
fn vouchers_are_cumulative_and_a_full_epoch_ends_once_its_voucher_is_taken() {
    let all = EPOCH as u32 + 3;
    let mut account = entered(0..all);
    (0..all).for_each(|text| account.finish(text));
    let full = account.due(LANE, false).unwrap();
    assert_eq!((full.epoch, full.tokens, full.receipts), (1, EPOCH as u32 * 10, root(0..EPOCH as u32)));
    assert_eq!(account.due(LANE, false), Some(full.clone()), "until the worker has it");
    account.taken(&full);
    let next = account.due(LANE, false).unwrap();
    assert_eq!((next.epoch, next.tokens, next.receipts), (2, all * 10, root(EPOCH as u32..all)));
    assert_eq!((full.before, next.before), (0, full.tokens), "each begins where the one before has ended");
    account.taken(&full);
    assert_eq!(account.due(LANE, false), Some(next), "an old answer changes nothing");
}

#[test]
fn an_epoch_is_full_with_the_tokens_of_so_many_longest_texts() {
    let mut account = Account::new(20);
    // 32 texts of 10 tokens; one that comes to nothing fills nothing.
    (0..40).for_each(|text| account.enter(text, id(text), 10));
    account.withdraw(5);
    (0..40).for_each(|text| account.finish(text));
    let full = account.due(LANE, false).unwrap();
    assert_eq!((full.tokens, full.receipts), (TEXTS * 20, root(0..33)));
    account.taken(&full);
    assert_eq!(account.due(LANE, false).unwrap().receipts, root(33..40));
}

#[test]
fn an_answer_that_comes_after_its_voucher_may_fill_the_epoch() {
    let mut account = Account::new(1);
    (0..8).for_each(|text| account.enter(text, id(text), 2));
    account.withdraw(0);
    (1..8).for_each(|text| account.finish(text));
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (14, root(0..8)));
    account.taken(&voucher);
    assert_eq!(account.due(LANE, false), None);
    for text in [0, 8, 9] {
        account.enter(text, id(text), 2);
        account.finish(text);
    }
    let full = account.due(LANE, false).unwrap();
    assert_eq!((full.epoch, full.tokens, full.receipts), (1, 16, root(0..8)));
    account.taken(&full);
    let next = account.due(LANE, false).unwrap();
    assert_eq!((next.epoch, next.before, next.tokens, next.receipts), (2, 16, 20, root(8..10)));
}

#[test]
fn an_answer_that_comes_while_the_last_voucher_is_on_its_way_is_paid_in_the_next_epoch() {
    let mut account = Account::new(1);
    (0..9).for_each(|text| account.enter(text, id(text), 2));
    account.withdraw(0);
    (1..9).for_each(|text| account.finish(text));
    let full = account.due(LANE, false).unwrap();
    assert_eq!((full.tokens, full.receipts), (16, root(0..9)));
    account.enter(0, id(0), 2);
    account.finish(0);
    account.taken(&full);
    assert_eq!((account.due(LANE, false), account.tokens()), (None, 18));
    account.enter(9, id(9), 2);
    account.finish(9);
    let next = account.due(LANE, false).unwrap();
    assert_eq!((next.epoch, next.before, next.tokens, next.receipts), (2, 16, 20, root([9])));
    account.redeemed(over(1, 16)).unwrap();
    account.redeemed(chain(2, 20, [9])).unwrap();
    assert_eq!((account.due(LANE, false), account.tokens()), (None, 20));
}

#[test]
fn nothing_is_signed_far_ahead_of_what_is_redeemed() {
    let all = 3 * EPOCH as u32;
    let mut account = entered(0..all);
    (0..all).for_each(|text| account.finish(text));
    let mut vouchers = Vec::new();
    while let Some(voucher) = account.due(LANE, false) {
        account.taken(&voucher);
        vouchers.push(voucher);
    }
    assert_eq!(vouchers.iter().map(|voucher| voucher.epoch).collect::<Vec<_>>(), [1, 2]);
    assert!(account.waits() && account.is_ahead());
    // A chain that tells nothing new, and one that has undone a redemption.
    account.redeemed(over(0, 0)).unwrap();
    assert_eq!(account.due(LANE, false), None);
    account.redeemed(over(1, vouchers[0].tokens)).unwrap();
    assert!(!account.waits() && account.due(LANE, false).is_some_and(|voucher| voucher.epoch == 3));
    account.redeemed(over(0, 0)).unwrap();
    assert_eq!((account.due(LANE, false), account.waits()), (None, true));
    account.redeemed(over(2, vouchers[1].tokens)).unwrap();
    assert_eq!(account.due(LANE, false).map(|voucher| voucher.before), Some(vouchers[1].tokens));
    // A restart forgets what the chain has, and asks it.
    let mut account: Account = serde_json::from_str(&serde_json::to_string(&account).unwrap()).unwrap();
    assert!(account.waits());
    account.redeemed(over(1, vouchers[0].tokens)).unwrap();
    assert!(account.due(LANE, false).is_some());
}

#[test]
fn a_redeemed_epoch_is_over() {
    let mut account = entered(0..3);
    (0..2).for_each(|text| account.finish(text));
    account.redeemed(over(0, 0)).unwrap();
    assert_eq!(
        account.redeemed(chain(1, 20, [0, 1])),
        Err(AccountError::Stale { epoch: 1, tokens: 20 }),
        "never signed"
    );
    account.due(LANE, false).unwrap();
    account.finish(2);
    account.due(LANE, false).unwrap();
    account.redeemed(chain(1, 20, [0, 1])).unwrap();
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.epoch, voucher.tokens, voucher.receipts), (2, 30, root([2])));
    assert_eq!(voucher.before, 20);
    account.redeemed(over(1, 20)).unwrap();
    // Less than the present epoch begins at, more, what was never signed, and epochs that have not begun.
    for (epoch, tokens) in [(1, 10), (1, 40), (0, 30), (2, 25), (2, 40), (5, 30)] {
        assert_eq!(account.redeemed(over(epoch, tokens)), Err(AccountError::Stale { epoch, tokens }));
    }
}

#[test]
fn of_two_lists_that_pay_the_same_the_chain_tells_which_ended_the_epoch() {
    for (list, rest) in [(vec![0], vec![1, 2]), (vec![0, 1], vec![2])] {
        let mut account = entered([0, 1, 2]);
        account.finish(0);
        // Neither is known to have arrived.
        let short = account.due(LANE, false).unwrap();
        account.withdraw(1);
        let long = account.due(LANE, false).unwrap();
        assert_eq!((short.tokens, short.receipts), (10, root([0])));
        assert_eq!((long.tokens, long.receipts), (10, root([0, 1])));
        account.finish(2);
        account.redeemed(chain(1, 10, list)).unwrap();
        let next = account.due(LANE, false).unwrap();
        assert_eq!((next.epoch, next.before, next.tokens, next.receipts), (2, 10, 20, root(rest)));
    }
}

#[test]
fn an_epoch_that_ends_early_is_known_by_its_list_also_when_an_answer_came_late() {
    let mut account = entered([0, 1, 2]);
    account.withdraw(0);
    account.finish(1);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (10, root([0, 1])));
    account.taken(&voucher);
    // Its answer comes, and is owed: in the next epoch, for the list that has it was redeemed without.
    account.enter(0, id(0), 5);
    (0..3).for_each(|text| account.finish(text));
    account.redeemed(chain(1, 10, [0, 1])).unwrap();
    let next = account.due(LANE, false).unwrap();
    assert_eq!((next.epoch, next.before, next.tokens, next.receipts), (2, 10, 25, root([2])));
    assert_eq!(account.tokens(), 25);
}

#[test]
fn a_list_that_was_never_signed_ends_nothing() {
    let stale = Err(AccountError::Stale { epoch: 1, tokens: 20 });
    let mut account = entered([0, 1, 2]);
    (0..2).for_each(|text| account.finish(text));
    account.due(LANE, false).unwrap();
    let before = account.clone();
    // As many tokens of other receipts, of other order, of none; more than was listed; the right list at another time.
    for list in [vec![0, 2], vec![1, 0], vec![], vec![0, 1, 2]] {
        assert_eq!(account.redeemed(chain(1, 20, list.clone())), stale, "{list:?}");
    }
    assert_eq!(account.redeemed(RedeemedView { at: 78, ..chain(1, 20, [0, 1]) }), stale);
    // More tokens than the list is worth.
    assert!(account.redeemed(chain(1, 20, [0])).is_err());
    assert_eq!(account, before, "and changes nothing");
    account.redeemed(chain(1, 20, [0, 1])).unwrap();
    assert_eq!(account.epoch(), 2);
}

#[test]
fn a_job_pays_so_many_tokens_and_a_worker_that_takes_no_vouchers_gets_no_texts() {
    let mut account = entered([1]);
    assert_eq!(account.promise(2, 6, 15), Err(AccountError::Spent { most: 15, owed: 10 }));
    assert_eq!(account.promise(2, 4, 15), Ok(()));
    assert_eq!(account.promise(3, 2, 15), Err(AccountError::Spent { most: 15, owed: 14 }));
    account.withdraw(2);
    assert_eq!(account.promise(3, 5, 15), Ok(()));
    assert_eq!(account.promise(3, 6, 15), Err(AccountError::Spent { most: 15, owed: 10 }));
    assert_eq!((account.tokens(), account.promise(3, 4, 15), account.tokens()), (15, Ok(()), 14), "not twice");
    assert!(account.promise(4, u32::MAX, u32::MAX).is_err());
    let mut many = entered(0..(EPOCH + WAITING) as u32);
    assert_eq!(many.promise(9999, 1, u32::MAX), Err(AccountError::Unpayable(EPOCH + WAITING)));
}

#[test]
fn what_was_under_way_at_a_restart_is_not_paid() {
    let mut account = entered([1, 2, 3]);
    account.finish(2);
    account.enter(2, id(2), 99);
    let json = serde_json::to_string(&account).unwrap();
    let mut account: Account = serde_json::from_str(&json).unwrap();
    account.withdraw_all();
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (10, root([1, 2, 3])));
}

/// The worker lists a receipt as soon as it has signed it, before its answer is here.
#[test]
fn an_answer_that_is_on_its_way_holds_the_voucher_back() {
    let mut account = Account::new(LONGEST);
    (0..2).for_each(|text| account.promise(text, 10, LONGEST).unwrap());
    account.enter(1, id(1), 10);
    account.finish(1);
    account.sync(&[(0, id(0)), (1, id(1))]);
    assert_eq!((account.due(LANE, true), account.tokens()), (None, 20), "the first answer is awaited");
    account.enter(0, id(0), 10);
    assert_eq!((account.due(LANE, true), account.tokens()), (None, 20));
    account.finish(0);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (20, root([0, 1])));
    // One that fails meanwhile is listed for nothing.
    account.promise(2, 10, LONGEST).unwrap();
    account.enter(3, id(3), 10);
    account.finish(3);
    account.sync(&[(0, id(0)), (1, id(1)), (2, id(2)), (3, id(3))]);
    assert_eq!(account.due(LANE, false), Some(voucher), "not taken yet");
    account.withdraw(2);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts, account.tokens()), (30, root([0, 1, 2, 3]), 30));
}

#[test]
fn two_texts_that_end_with_their_epoch_are_paid_whichever_answer_comes_first() {
    let last = EPOCH as u32 - 1;
    let mut account = entered(0..last);
    (0..last).for_each(|text| account.finish(text));
    // The worker signs the epoch's last receipt, and the first of the next one, whose answer overtakes it.
    (last..last + 2).for_each(|text| account.promise(text, 10, u32::MAX).unwrap());
    account.enter(last + 1, id(last + 1), 10);
    account.finish(last + 1);
    let listed: Vec<_> = (0..last + 2).map(|text| (text, id(text))).collect();
    account.sync(&listed);
    let part = account.due(LANE, false).unwrap();
    assert_eq!((part.tokens, part.receipts), (last * 10, root(0..last)));
    account.taken(&part);
    assert_eq!((account.due(LANE, true), account.epoch()), (None, 1));
    account.enter(last, id(last), 10);
    account.finish(last);
    let full = account.due(LANE, false).unwrap();
    assert_eq!((full.epoch, full.tokens, full.receipts), (1, (last + 1) * 10, root(0..=last)));
    account.taken(&full);
    let next = account.due(LANE, false).unwrap();
    assert_eq!((next.epoch, next.tokens, next.receipts), (2, (last + 2) * 10, root([last + 1])));
    account.taken(&next);
    assert_eq!((account.due(LANE, true), account.tokens()), (None, (last + 2) * 10));
}

#[test]
fn what_a_voucher_lists_for_nothing_is_paid_once_it_is_owed() {
    let mut account = entered([1]);
    account.finish(1);
    account.sync(&[(0, id(0)), (1, id(1))]);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts), (10, root([0, 1])));
    account.taken(&voucher);
    assert_eq!(account.due(LANE, true), None);
    account.enter(0, id(0), 10);
    assert_eq!(account.due(LANE, false), None);
    account.finish(0);
    let more = account.due(LANE, false).unwrap();
    assert_eq!((more.tokens, more.receipts), (20, voucher.receipts), "the same list, and more tokens");
    account.taken(&more);
    assert_eq!(account.due(LANE, false), None);
}

#[test]
fn a_text_is_paid_once_though_the_worker_lists_other_receipts_for_it() {
    let mut account = Account::new(LONGEST);
    account.promise(0, 10, LONGEST).unwrap();
    account.sync(&[(0, id(98)), (0, id(99))]);
    account.enter(0, id(0), 10);
    account.finish(0);
    let voucher = account.due(LANE, false).unwrap();
    assert_eq!((voucher.tokens, voucher.receipts, account.tokens()), (10, root([98, 99, 0]), 10));
}

#[test]
fn a_worker_that_asks_gets_a_voucher_for_texts_that_came_to_nothing() {
    let mut account = entered([0, 1, 2]);
    account.finish(0);
    let first = account.due(LANE, false).unwrap();
    account.taken(&first);
    account.withdraw(1);
    assert_eq!(account.due(LANE, false), None);
    let listing = account.due(LANE, true).unwrap();
    assert_eq!((listing.tokens, listing.receipts), (first.tokens, root([0, 1])));
    account.taken(&listing);
    assert_eq!(account.due(LANE, true), None);
}

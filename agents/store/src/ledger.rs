//! Who owns which file, and in which order the files that nobody owns were used. It is kept in a database, beside
//! what it is about: a change of both is one transaction where the blocks are in the same one.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, WriteTransaction};
use tensorlink_node::ports::{Owner, StoreError};
use tensorlink_types::{B256, ClaimId, JobId, Lane};

use crate::backend::failure;

/// (Owner, root CID): the owner owns the file.
const OWNED: TableDefinition<'_, (&[u8], &[u8]), ()> = TableDefinition::new("owned");
/// Root CID → number of owners, bytes, when it was used last, whether it was looked at for a quote only.
const FILES: TableDefinition<'_, &[u8], (u64, u64, u64, bool)> = TableDefinition::new("files");
/// (When it was used last, root CID) of each file that nobody owns.
const QUEUE: TableDefinition<'_, (u64, &[u8]), ()> = TableDefinition::new("queue");
/// Sums by name, the clock of uses, and the version of these tables.
const SUMS: TableDefinition<'_, &str, u64> = TableDefinition::new("sums");
const CLOCK: &str = "clock";
const VERSION: &str = "version";
/// Before every root.
const FIRST: &[u8] = &[];
/// The version that is read and written here.
const CURRENT: u64 = 1;

/// Files of a kind, whose bytes are summed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Somebody owns them.
    Owned,
    /// Nobody owns them.
    Passing,
    /// Nobody owns them, and they were looked at for a quote only.
    Quoted,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Owned => "owned",
            Self::Passing => "passing",
            Self::Quoted => "quoted",
        }
    }
}

/// What is known of a file.
#[derive(Clone, Copy, Debug)]
struct File {
    owners: u64,
    bytes: u64,
    used: u64,
    quoted: bool,
}

impl File {
    const fn kind(&self) -> Kind {
        match self {
            Self { owners: 1.., .. } => Kind::Owned,
            Self { quoted: true, .. } => Kind::Quoted,
            Self { .. } => Kind::Passing,
        }
    }
}

/// The name of an owner that keeps files; none of who does not.
fn key_of(owner: Owner) -> Option<Vec<u8>> {
    let lane = |Lane { job, stage, replica }: Lane| {
        [job.0.to_be_bytes().as_slice(), &stage.to_be_bytes(), &replica.to_be_bytes()].concat()
    };
    let (tag, name) = match owner {
        Owner::Node => (1, Vec::new()),
        Owner::Lane(of) => (2, lane(of)),
        Owner::Ward(of) => (3, lane(of)),
        Owner::Holding(claim) => (4, claim.0.to_vec()),
        Owner::Audit(claim) => (5, claim.0.to_vec()),
        Owner::Nobody | Owner::Quote => return None,
    };
    Some([[tag].as_slice(), name.as_slice()].concat())
}

/// The owner of this name.
fn owner_of(key: &[u8]) -> Option<Owner> {
    let (tag, name) = key.split_first()?;
    let lane = || {
        let (job, rest) = name.split_first_chunk::<8>()?;
        let (stage, rest) = rest.split_first_chunk::<2>()?;
        let (replica, []) = rest.split_first_chunk::<2>()? else { return None };
        let (stage, replica) = (u16::from_be_bytes(*stage), u16::from_be_bytes(*replica));
        Some(Lane { job: JobId(u64::from_be_bytes(*job)), stage, replica })
    };
    let claim = || Some(ClaimId(B256::from(<[u8; 32]>::try_from(name).ok()?)));
    match tag {
        1 if name.is_empty() => Some(Owner::Node),
        2 => lane().map(Owner::Lane),
        3 => lane().map(Owner::Ward),
        4 => claim().map(Owner::Holding),
        5 => claim().map(Owner::Audit),
        _ => None,
    }
}

/// Whether a file is owned so already that [`Ledger::own`] would change nothing.
pub(crate) fn is_owned(read: &ReadTransaction, owner: Owner, root: &[u8]) -> Result<bool, StoreError> {
    match key_of(owner) {
        Some(key) => {
            let owned = read.open_table(OWNED).map_err(failure)?;
            Ok(owned.get((key.as_slice(), root)).map_err(failure)?.is_some())
        }
        None => {
            let files = read.open_table(FILES).map_err(failure)?;
            Ok(files.get(root).map_err(failure)?.is_some_and(|file| file.value().0 > 0))
        }
    }
}

/// Whether an owner has any file.
pub(crate) fn has_any(read: &ReadTransaction, owner: Owner) -> Result<bool, StoreError> {
    let Some(key) = key_of(owner) else { return Ok(false) };
    let owned = read.open_table(OWNED).map_err(failure)?;
    let first = owned.range((key.as_slice(), FIRST)..).map_err(failure)?.next();
    Ok(first.transpose().map_err(failure)?.is_some_and(|(entry, _)| entry.value().0 == key.as_slice()))
}

/// All that own files.
pub(crate) fn owners(read: &ReadTransaction) -> Result<Vec<Owner>, StoreError> {
    let owned = read.open_table(OWNED).map_err(failure)?;
    let mut owners = Vec::new();
    for entry in owned.iter().map_err(failure)? {
        let (key, _) = entry.map_err(failure)?;
        if let Some(owner) = owner_of(key.value().0)
            && owners.last() != Some(&owner)
        {
            owners.push(owner);
        }
    }
    Ok(owners)
}

/// Bytes of all files of a kind.
pub(crate) fn sum(read: &ReadTransaction, kind: Kind) -> Result<u64, StoreError> {
    let sums = read.open_table(SUMS).map_err(failure)?;
    Ok(sums.get(kind.name()).map_err(failure)?.map_or(0, |sum| sum.value()))
}

/// The tables, open for a change.
pub(crate) struct Ledger<'t> {
    owned: Table<'t, (&'static [u8], &'static [u8]), ()>,
    files: Table<'t, &'static [u8], (u64, u64, u64, bool)>,
    queue: Table<'t, (u64, &'static [u8]), ()>,
    sums: Table<'t, &'static str, u64>,
}

impl<'t> Ledger<'t> {
    pub(crate) fn open(write: &'t WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            owned: write.open_table(OWNED).map_err(failure)?,
            files: write.open_table(FILES).map_err(failure)?,
            queue: write.open_table(QUEUE).map_err(failure)?,
            sums: write.open_table(SUMS).map_err(failure)?,
        })
    }

    /// Checks the version, which is set where there was none. Whether there was.
    pub(crate) fn settle_version(&mut self) -> Result<bool, StoreError> {
        let version = self.sums.get(VERSION).map_err(failure)?.map(|version| version.value());
        match version {
            Some(CURRENT) => Ok(true),
            Some(other) => Err(StoreError::Backend(format!(
                "its record of owners has version {other}, this program knows {CURRENT}: use the program that wrote it"
            ))),
            None => {
                self.sums.insert(VERSION, CURRENT).map_err(failure)?;
                Ok(false)
            }
        }
    }

    /// Bytes of all files of a kind.
    pub(crate) fn sum(&self, kind: Kind) -> Result<u64, StoreError> {
        Ok(self.sums.get(kind.name()).map_err(failure)?.map_or(0, |sum| sum.value()))
    }

    fn file(&self, root: &[u8]) -> Result<Option<File>, StoreError> {
        let file = self.files.get(root).map_err(failure)?.map(|file| file.value());
        Ok(file.map(|(owners, bytes, used, quoted)| File { owners, bytes, used, quoted }))
    }

    /// Later than everything before.
    fn tick(&mut self) -> Result<u64, StoreError> {
        let now = self.sums.get(CLOCK).map_err(failure)?.map_or(0, |clock| clock.value()).saturating_add(1);
        self.sums.insert(CLOCK, now).map_err(failure)?;
        Ok(now)
    }

    /// Puts a file's entry in place of what was there, in all tables.
    fn set(&mut self, root: &[u8], next: Option<File>) -> Result<(), StoreError> {
        if let Some(before) = self.file(root)? {
            let rest = self.sum(before.kind())?.saturating_sub(before.bytes);
            self.sums.insert(before.kind().name(), rest).map_err(failure)?;
            self.queue.remove((before.used, root)).map_err(failure)?;
        }
        let Some(file) = next else {
            self.files.remove(root).map_err(failure)?;
            return Ok(());
        };
        let more = self.sum(file.kind())?.saturating_add(file.bytes);
        self.sums.insert(file.kind().name(), more).map_err(failure)?;
        if file.owners == 0 {
            self.queue.insert((file.used, root), ()).map_err(failure)?;
        }
        self.files.insert(root, (file.owners, file.bytes, file.used, file.quoted)).map_err(failure)?;
        Ok(())
    }

    /// Makes somebody an owner of a file of so many bytes, or says that it was used for nobody.
    pub(crate) fn own(&mut self, owner: Owner, root: &[u8], bytes: u64) -> Result<(), StoreError> {
        let known = self.file(root)?;
        let used = self.tick()?;
        let file = known.unwrap_or(File { owners: 0, bytes, used, quoted: true });
        let next = match key_of(owner) {
            Some(key) => {
                let more = self.owned.insert((key.as_slice(), root), ()).map_err(failure)?.is_none();
                File { owners: file.owners.saturating_add(more.into()), used, quoted: false, ..file }
            }
            None => File { used, quoted: file.quoted && owner == Owner::Quote, ..file },
        };
        self.set(root, Some(next))
    }

    /// The same for a file that is in the record; whether it is.
    pub(crate) fn own_known(&mut self, owner: Owner, root: &[u8]) -> Result<bool, StoreError> {
        match self.file(root)? {
            Some(File { bytes, .. }) => self.own(owner, root, bytes).map(|()| true),
            None => Ok(false),
        }
    }

    /// Lets go of a file. Whether nobody owns it now, because its last owner let go, or nobody did before.
    pub(crate) fn disown(&mut self, owner: Owner, root: &[u8]) -> Result<bool, StoreError> {
        let Some(file) = self.file(root)? else { return Ok(false) };
        let Some(key) = key_of(owner) else { return Ok(file.owners == 0) };
        if self.owned.remove((key.as_slice(), root)).map_err(failure)?.is_none() {
            return Ok(false);
        }
        let next = File { owners: file.owners.saturating_sub(1), used: self.tick()?, ..file };
        self.set(root, Some(next))?;
        Ok(next.owners == 0)
    }

    /// Lets go of all files of an owner.
    pub(crate) fn release(&mut self, owner: Owner) -> Result<(), StoreError> {
        let Some(key) = key_of(owner) else { return Ok(()) };
        let mut roots: Vec<Vec<u8>> = Vec::new();
        for entry in self.owned.range((key.as_slice(), FIRST)..).map_err(failure)? {
            let (entry, _) = entry.map_err(failure)?;
            let (of, root) = entry.value();
            if of != key.as_slice() {
                break;
            }
            roots.push(root.to_vec());
        }
        roots.iter().try_for_each(|root| self.disown(owner, root).map(drop))
    }

    /// Drops what is known of a file that nobody owns.
    pub(crate) fn forget(&mut self, root: &[u8]) -> Result<(), StoreError> {
        self.set(root, None)
    }

    /// The files that nobody owns, those first that were not used for longest, each with its bytes and whether it was
    /// looked at for a quote only.
    pub(crate) fn unowned(&self) -> Result<Vec<(Vec<u8>, u64, bool)>, StoreError> {
        let mut files = Vec::new();
        for entry in self.queue.iter().map_err(failure)? {
            let (entry, _) = entry.map_err(failure)?;
            let (_, root) = entry.value();
            if let Some(File { bytes, quoted, .. }) = self.file(root)? {
                files.push((root.to_vec(), bytes, quoted));
            }
        }
        Ok(files)
    }

    /// The file that nobody owns and that was not used for longest, of those for quotes only if `quoted`.
    pub(crate) fn oldest(&self, quoted: bool) -> Result<Option<Vec<u8>>, StoreError> {
        for entry in self.queue.iter().map_err(failure)? {
            let (entry, _) = entry.map_err(failure)?;
            let (_, root) = entry.value();
            if !quoted || self.file(root)?.is_some_and(|file| file.quoted) {
                return Ok(Some(root.to_vec()));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;
    use redb::{Database, ReadableDatabase};

    use super::*;

    const LANE: Lane = Lane { job: JobId(1), stage: 2, replica: 3 };

    fn change<T>(database: &Database, change: impl FnOnce(&mut Ledger<'_>) -> T) -> T {
        let write = database.begin_write().unwrap();
        let done = change(&mut Ledger::open(&write).unwrap());
        write.commit().unwrap();
        done
    }

    fn sums(database: &Database) -> [u64; 3] {
        let read = database.begin_read().unwrap();
        [Kind::Owned, Kind::Passing, Kind::Quoted].map(|kind| sum(&read, kind).unwrap())
    }

    #[test]
    fn every_owner_that_keeps_files_is_read_as_it_was_written_and_no_other_bytes_are_an_owner() {
        let claim = ClaimId(B256::repeat_byte(7));
        let owners = [
            Owner::Node,
            Owner::Lane(LANE),
            Owner::Lane(Lane { job: JobId(u64::MAX), stage: 0, replica: u16::MAX }),
            Owner::Ward(LANE),
            Owner::Holding(claim),
            Owner::Audit(claim),
        ];
        for owner in owners {
            let key = key_of(owner).unwrap();
            assert_eq!(owner_of(&key), Some(owner));
            assert_eq!(owner_of(&[key.as_slice(), &[0]].concat()), None);
        }
        assert_eq!((key_of(Owner::Nobody), key_of(Owner::Quote)), (None, None));
        for bytes in [&[] as &[u8], &[0], &[9], &[2, 0]] {
            assert_eq!(owner_of(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_is_free_when_its_last_owner_lets_go_and_the_oldest_goes_first() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let (lane, ward) = (Owner::Lane(LANE), Owner::Ward(LANE));
        change(&database, |ledger| {
            ledger.own(lane, b"shared", 10).unwrap();
            ledger.own(lane, b"shared", 10).unwrap();
            ledger.own(ward, b"shared", 10).unwrap();
            ledger.own(lane, b"alone", 5).unwrap();
            ledger.own(Owner::Quote, b"quoted", 3).unwrap();
            ledger.own(Owner::Nobody, b"seen", 2).unwrap();
        });
        assert_eq!(sums(&database), [15, 2, 3]);
        assert_eq!(owners(&database.begin_read().unwrap()).unwrap(), [lane, ward]);
        change(&database, |ledger| {
            assert!(!ledger.disown(Owner::Node, b"shared").unwrap(), "it had none");
            ledger.release(lane).unwrap();
            assert_eq!(ledger.oldest(false).unwrap().unwrap(), b"quoted");
            ledger.own(Owner::Quote, b"quoted", 3).unwrap();
            assert_eq!(ledger.oldest(false).unwrap().unwrap(), b"seen");
            assert_eq!(ledger.oldest(true).unwrap().unwrap(), b"quoted");
            assert!(!ledger.disown(Owner::Nobody, b"shared").unwrap(), "another owns it");
            assert!(ledger.disown(ward, b"shared").unwrap());
            ledger.forget(b"shared").unwrap();
        });
        assert_eq!(sums(&database), [0, 7, 3]);
        change(&database, |ledger| ledger.own(lane, b"quoted", 3).unwrap());
        assert_eq!(sums(&database), [3, 7, 0]);
    }

    #[test]
    fn tables_of_another_version_are_refused() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        change(&database, |ledger| assert!(!ledger.settle_version().unwrap()));
        change(&database, |ledger| assert!(ledger.settle_version().unwrap()));
        change(&database, |ledger| ledger.sums.insert(VERSION, CURRENT + 1).map(drop).unwrap());
        let error = change(&database, |ledger| ledger.settle_version().unwrap_err().to_string());
        assert!(error.contains("version 2"), "{error}");
    }
}

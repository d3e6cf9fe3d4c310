//! The thread that owns the file.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::error::SqliteStoreError;
use crate::backend::{Joint, Operation};
use crate::decision::{Decision, JointDecision};
use crate::gcra::{self, Tat};
use crate::key::KeyRef;
use crate::quota::Quota;

/// Says that a file is one of ours ("thrk"), and in which form.
const APPLICATION_ID: i64 = 0x7468_726b;
const VERSION: i64 = 1;

/// Jobs in one transaction.
const BATCH_MAX: usize = 256;

/// Rows that a transaction looks at in search of past ones, besides two for
/// each that it writes.
const PRUNE_ROWS: usize = 16;

/// Rows looked at when the file is full.
const PRUNE_ROWS_FULL: usize = 65_536;

/// How long another process may hold the file.
const BUSY: Duration = Duration::from_millis(500);

/// Of the write-ahead log, kept after a checkpoint.
const LOG_BYTES_MAX: i64 = 16 << 20;

pub(super) type Reply<T> = oneshot::Sender<Result<T, SqliteStoreError>>;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) path: PathBuf,
    pub(super) bytes_max: u64,
    pub(super) survive_power_loss: bool,
}

/// What the thread is asked to do.
pub(super) enum Job {
    One(Ask, Operation, Reply<Decision>),
    All(Vec<Ask>, Reply<JointDecision>),
}

pub(super) struct Ask {
    key: Vec<u8>,
    quota: Quota,
    n: u32,
}

impl Ask {
    pub(super) fn new(key: KeyRef<'_>, quota: &Quota, n: u32) -> Self {
        let mut name = Vec::with_capacity(key.bytes.len() + 16);
        key.write_canonical(&mut name);
        Self {
            key: name,
            quota: *quota,
            n,
        }
    }
}

/// What is sent when the transaction is committed.
enum Outcome {
    One(Decision),
    All(JointDecision),
}

impl Job {
    fn decide(&self, ledger: &mut Ledger<'_>) -> rusqlite::Result<Outcome> {
        match self {
            Self::One(ask, operation, _) => {
                let tat = ledger.tat(&ask.key)?;
                let step = gcra::step(tat, ledger.now_ns, &ask.quota, ask.n, *operation);
                ledger.set(&ask.key, tat, step.tat);
                Ok(Outcome::One(step.decision))
            }
            Self::All(asks, _) => {
                let mut joint = Joint::default();
                let mut before = Vec::with_capacity(asks.len());
                for (index, ask) in asks.iter().enumerate() {
                    let tat = ledger.tat(&ask.key)?;
                    let operation = joint.operation();
                    let step = gcra::step(tat, ledger.now_ns, &ask.quota, ask.n, operation);
                    ledger.set(&ask.key, tat, step.tat);
                    before.push((&ask.key, tat, step.tat));
                    joint.add(index, step.decision);
                }
                if joint.operation() != Operation::Check {
                    for (key, old, new) in before.into_iter().rev() {
                        ledger.set(key, new, old);
                    }
                }
                Ok(Outcome::All(joint.into_decision()))
            }
        }
    }

    fn reply(self, outcome: Result<Outcome, SqliteStoreError>) {
        // Who gave up meanwhile needs no answer.
        match (self, outcome) {
            (Self::One(_, _, reply), Ok(Outcome::One(decision))) => drop(reply.send(Ok(decision))),
            (Self::All(_, reply), Ok(Outcome::All(joint))) => drop(reply.send(Ok(joint))),
            (Self::One(_, _, reply), Err(error)) => drop(reply.send(Err(error))),
            (Self::All(_, reply), Err(error)) => drop(reply.send(Err(error))),
            // `decide` gives each job its own kind; dropping the reply says `Closed`.
            _ => {}
        }
    }
}

/// The states that a transaction has read and changed.
struct Ledger<'c> {
    connection: &'c Connection,
    now_ns: u64,
    rows: HashMap<Vec<u8>, Row>,
}

struct Row {
    tat: Tat,
    changed: bool,
}

impl Ledger<'_> {
    fn tat(&mut self, key: &[u8]) -> rusqlite::Result<Tat> {
        if let Some(row) = self.rows.get(key) {
            return Ok(row.tat);
        }
        let mut statement = self
            .connection
            .prepare_cached("SELECT tat FROM budgets WHERE key = ?1 AND whole_at > ?2")?;
        let bits: Option<i64> = statement
            .query_row(params![key, self.now_ns as i64], |row| row.get(0))
            .optional()?;
        let tat = bits.map_or(Tat::NEVER, |bits| Tat::from_bits(bits as u64));
        let row = Row {
            tat,
            changed: false,
        };
        self.rows.insert(key.to_vec(), row);
        Ok(tat)
    }

    /// Changes a state that was read as `old`.
    fn set(&mut self, key: &[u8], old: Tat, new: Tat) {
        if new != old
            && let Some(row) = self.rows.get_mut(key)
        {
            row.tat = new;
            row.changed = true;
        }
    }

    /// Writes what changed; how many rows that were.
    fn write(&self) -> rusqlite::Result<usize> {
        let mut upsert = self.connection.prepare_cached(
            "INSERT INTO budgets (key, tat, whole_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (key) DO UPDATE SET tat = excluded.tat, whole_at = excluded.whole_at",
        )?;
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM budgets WHERE key = ?1")?;
        let mut written = 0;
        for (key, row) in self.rows.iter().filter(|(_, row)| row.changed) {
            let ahead = row.tat.ahead_ns(self.now_ns);
            if ahead < 0 || row.tat == Tat::NEVER {
                delete.execute([key])?;
            } else {
                let whole_at = (self.now_ns as i64).saturating_add(ahead).saturating_add(1);
                upsert.execute(params![key, row.tat.to_bits() as i64, whole_at])?;
            }
            written += 1;
        }
        Ok(written)
    }
}

/// The file, and where the search for past rows goes on.
pub(super) struct Writer {
    connection: Connection,
    cursor: Vec<u8>,
}

impl Writer {
    pub(super) fn open(settings: &Settings) -> Result<Self, SqliteStoreError> {
        Self::connect(settings).map_err(|why| SqliteStoreError::Open {
            path: settings.path.clone(),
            why,
        })
    }

    fn connect(settings: &Settings) -> Result<Self, String> {
        let text = |error: rusqlite::Error| error.to_string();
        let mut connection = Connection::open(&settings.path).map_err(text)?;
        connection.busy_timeout(BUSY).map_err(text)?;
        let mode: String = connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(text)?;
        if !mode.eq_ignore_ascii_case("wal") {
            return Err(format!(
                "it cannot have a write-ahead log (journal mode {mode}): a file on a local disk can"
            ));
        }
        Self::claim(&mut connection)?;
        let synchronous = if settings.survive_power_loss {
            "FULL"
        } else {
            "NORMAL"
        };
        connection
            .pragma_update(None, "synchronous", synchronous)
            .map_err(text)?;
        connection
            .pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))
            .map_err(text)?;
        let page_bytes: i64 = connection
            .query_row("PRAGMA page_size", [], |row| row.get(0))
            .map_err(text)?;
        let pages = settings.bytes_max / u64::try_from(page_bytes).unwrap_or(4096).max(1);
        let pages = i64::try_from(pages).unwrap_or(i64::MAX).min(0xffff_fffe);
        connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(text)?;
        Ok(Self {
            connection,
            cursor: Vec::new(),
        })
    }

    /// Makes an empty file ours, and refuses those of others.
    fn claim(connection: &mut Connection) -> Result<(), String> {
        let text = |error: rusqlite::Error| error.to_string();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(text)?;
        let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        let application = number("PRAGMA application_id").map_err(text)?;
        let version = number("PRAGMA user_version").map_err(text)?;
        let tables = number("SELECT count(*) FROM sqlite_schema").map_err(text)?;
        match (application, version, tables) {
            (APPLICATION_ID, VERSION, _) => return Ok(()),
            (APPLICATION_ID, _, _) => {
                return Err(format!(
                    "it is of version {version}, this release reads version {VERSION}"
                ));
            }
            (0, 0, 0) => {}
            _ => return Err("it is a database of another program".to_owned()),
        }
        transaction
            .execute_batch(
                "CREATE TABLE budgets (
                    key BLOB NOT NULL PRIMARY KEY,
                    tat INTEGER NOT NULL,
                    whole_at INTEGER NOT NULL
                 ) WITHOUT ROWID, STRICT",
            )
            .map_err(text)?;
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(text)?;
        transaction
            .pragma_update(None, "user_version", VERSION)
            .map_err(text)?;
        transaction.commit().map_err(text)
    }

    /// Works until every sender is gone.
    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let mut jobs = vec![first];
            jobs.extend(queue.try_iter().take(BATCH_MAX - 1));
            self.serve(jobs);
        }
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        match self.commit(&jobs) {
            Ok(outcomes) => {
                for (job, outcome) in jobs.into_iter().zip(outcomes) {
                    job.reply(Ok(outcome));
                }
            }
            // One that does not fit must not take the others with it.
            Err(_) => jobs.into_iter().for_each(|job| self.serve_one(job)),
        }
    }

    /// A second try, of a job for itself and with room made.
    fn serve_one(&mut self, job: Job) {
        let outcome = self
            .commit(std::slice::from_ref(&job))
            .or_else(|_| {
                self.prune_full()?;
                self.commit(std::slice::from_ref(&job))
            })
            .map_err(SqliteStoreError::from)
            .and_then(|mut outcomes| outcomes.pop().ok_or(SqliteStoreError::Closed));
        job.reply(outcome);
    }

    /// Decides jobs in one transaction. On an error nothing was charged.
    fn commit(&mut self, jobs: &[Job]) -> rusqlite::Result<Vec<Outcome>> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read inside, after the wait for the lock: another process that came
        // first has not charged at a later moment.
        let now_ns = now_ns();
        let mut ledger = Ledger {
            connection: &transaction,
            now_ns,
            rows: HashMap::with_capacity(jobs.len()),
        };
        let outcomes = jobs
            .iter()
            .map(|job| job.decide(&mut ledger))
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let written = ledger.write()?;
        let mut cursor = None;
        if written > 0 {
            let rows = PRUNE_ROWS + 2 * written;
            cursor = Some(prune(&transaction, &self.cursor, rows, now_ns)?);
        }
        transaction.commit()?;
        if let Some(cursor) = cursor {
            self.cursor = cursor;
        }
        Ok(outcomes)
    }

    fn prune_full(&mut self) -> rusqlite::Result<()> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let cursor = prune(&transaction, &self.cursor, PRUNE_ROWS_FULL, now_ns())?;
        transaction.commit()?;
        self.cursor = cursor;
        Ok(())
    }
}

/// Deletes the past ones of the `rows` rows after `cursor`. Where to go on.
fn prune(
    connection: &Connection,
    cursor: &[u8],
    rows: usize,
    now_ns: u64,
) -> rusqlite::Result<Vec<u8>> {
    let mut last = connection.prepare_cached(
        "SELECT max(key) FROM (SELECT key FROM budgets WHERE key > ?1 ORDER BY key LIMIT ?2)",
    )?;
    let last: Option<Vec<u8>> = last.query_row(params![cursor, rows as i64], |row| row.get(0))?;
    let Some(last) = last else {
        return Ok(Vec::new());
    };
    let mut delete = connection
        .prepare_cached("DELETE FROM budgets WHERE key > ?1 AND key <= ?2 AND whole_at <= ?3")?;
    delete.execute(params![cursor, last, now_ns as i64])?;
    Ok(last)
}

/// Nanoseconds of the Unix epoch.
fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

//! The connections of a server, and which of them makes room for another.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, timeout};

use super::activity::{Activity, Rest};
use super::counts::ConnectionCounts;

/// How long a connection has to do something before it may have to go.
pub(super) const REST_MIN: Duration = Duration::from_secs(1);

/// How many are chosen at a time, so that a flood does not have all of them looked
/// at for each connection of it.
const CANDIDATES_MAX: usize = 256;

/// All open connections.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    tasks: JoinSet<()>,
    members: HashMap<Id, Member>,
    /// Who was at rest when that was looked at; the last goes first.
    candidates: Vec<(Rest, Id)>,
    /// Who is making room.
    leaving: Option<Id>,
    /// `None` where nobody counts.
    counts: Option<ConnectionCounts>,
}

#[derive(Debug)]
struct Member {
    task: AbortHandle,
    activity: Arc<Activity>,
}

impl Crowd {
    /// Nobody yet; who has to make room is counted.
    pub(super) fn new(counts: Option<ConnectionCounts>) -> Self {
        Self {
            counts,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether somebody is about to end who was told to.
    pub(super) fn is_making_room(&self) -> bool {
        self.leaving.is_some()
    }

    /// Runs a connection.
    pub(super) fn admit(
        &mut self,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        self.members.insert(task.id(), Member { task, activity });
    }

    /// Waits until a connection ends; `false` when there is none.
    pub(super) async fn ended(&mut self) -> bool {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return false;
        };
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(%error, "a connection ended in a panic");
        }
        self.members.remove(&id);
        self.leaving.take_if(|leaving| *leaving == id);
        true
    }

    /// Cuts the connection that has been at rest longest, first those that no
    /// request ever came on; `false` when none has been for [`REST_MIN`].
    pub(super) fn make_room(&mut self) -> bool {
        if self.leaving.is_some() {
            return true;
        }
        if self.leave_first() {
            return true;
        }
        self.choose();
        self.leave_first()
    }

    /// Cuts the first candidate that has done nothing since it was chosen.
    fn leave_first(&mut self) -> bool {
        while let Some((rest, id)) = self.candidates.pop() {
            let member = self.members.get(&id);
            if let Some(member) = member.filter(|member| member.activity.rest() == Some(rest)) {
                tracing::debug!("a connection at rest makes room for another");
                member.task.abort();
                if let Some(counts) = &self.counts {
                    counts.note_displaced();
                }
                self.leaving = Some(id);
                return true;
            }
        }
        false
    }

    fn choose(&mut self) {
        let Some(rested) = Instant::now().checked_sub(REST_MIN) else {
            return;
        };
        let at_rest = self.members.iter();
        let at_rest = at_rest.filter_map(|(id, member)| Some((member.activity.rest()?, *id)));
        self.candidates.extend(at_rest);
        // As long as some never asked, only those go, young as they may be yet.
        let spares_who_asked = self.candidates.iter().any(|(rest, _)| !rest.was_asked);
        self.candidates
            .retain(|(rest, _)| rest.since <= rested && !(rest.was_asked && spares_who_asked));
        self.candidates
            .sort_unstable_by_key(|(rest, _)| std::cmp::Reverse(*rest));
        let too_many = self.candidates.len().saturating_sub(CANDIDATES_MAX);
        self.candidates.drain(..too_many);
    }

    /// Waits for all to end, and cuts those that are left after `limit`; how many
    /// they were.
    pub(super) async fn drain(mut self, limit: Duration) -> usize {
        let finished = async { while self.ended().await {} };
        let cut = match timeout(limit, finished).await {
            Ok(()) => 0,
            Err(_) => self.len(),
        };
        self.tasks.shutdown().await;
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// A connection that stays until it is cut, and what it does.
    fn join(crowd: &mut Crowd) -> Arc<Activity> {
        let activity = Activity::new();
        let held = activity.clone();
        crowd.admit(activity.clone(), async move {
            let _held = held;
            pending::<()>().await;
        });
        activity
    }

    /// Whether this one was cut; the crowd and the test hold it otherwise.
    fn is_gone(activity: &Arc<Activity>) -> bool {
        Arc::strong_count(activity) == 1
    }

    async fn pass(time: Duration) {
        tokio::time::advance(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_asked_goes_before_who_has_rested_longer() {
        let mut crowd = Crowd::default();
        let asked = join(&mut crowd);
        drop(asked.begin());
        pass(Duration::from_millis(10)).await;
        let first = join(&mut crowd);
        pass(Duration::from_millis(10)).await;
        let second = join(&mut crowd);
        let busy = join(&mut crowd);
        let mark = busy.begin();
        pass(REST_MIN).await;
        for expected in [&first, &second, &asked] {
            assert!(crowd.make_room());
            assert!(crowd.is_making_room());
            // One at a time.
            assert!(crowd.make_room());
            assert!(crowd.ended().await);
            assert!(is_gone(expected));
        }
        assert!(!crowd.make_room());
        assert_eq!(crowd.len(), 1);
        drop(mark);
        assert!(!crowd.make_room());
        pass(REST_MIN).await;
        assert!(crowd.make_room());
        assert!(crowd.ended().await);
        assert!(!crowd.ended().await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asked_stays_while_others_never_did() {
        let mut crowd = Crowd::default();
        let asked = join(&mut crowd);
        drop(asked.begin());
        pass(REST_MIN).await;
        let young = join(&mut crowd);
        assert!(!crowd.make_room());
        pass(REST_MIN).await;
        assert!(crowd.make_room());
        assert!(crowd.ended().await);
        assert!(is_gone(&young) && !is_gone(&asked));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_chosen_and_is_busy_again_stays() {
        let mut crowd = Crowd::default();
        let first = join(&mut crowd);
        pass(Duration::from_millis(10)).await;
        let second = join(&mut crowd);
        pass(Duration::from_millis(10)).await;
        let third = join(&mut crowd);
        pass(REST_MIN).await;
        assert!(crowd.make_room());
        assert!(crowd.ended().await);
        assert!(is_gone(&first));
        let _mark = second.begin();
        assert!(crowd.make_room());
        assert!(crowd.ended().await);
        assert!(is_gone(&third) && !is_gone(&second));
    }

    #[tokio::test(start_paused = true)]
    async fn the_young_are_let_be() {
        let mut crowd = Crowd::default();
        let _young = join(&mut crowd);
        pass(REST_MIN - Duration::from_millis(1)).await;
        assert!(!crowd.make_room());
        pass(Duration::from_millis(1)).await;
        assert!(crowd.make_room());
    }

    #[tokio::test(start_paused = true)]
    async fn more_than_are_chosen_at_a_time_can_go() {
        let mut crowd = Crowd::default();
        for _ in 0..=CANDIDATES_MAX {
            join(&mut crowd);
        }
        pass(REST_MIN).await;
        for _ in 0..=CANDIDATES_MAX {
            assert!(crowd.make_room());
            assert!(crowd.ended().await);
        }
        assert_eq!(crowd.len(), 0);
    }
}

// Exercise B: in src/approve.rs, a guard that also notices A B A B A B.

/// Notices the same call, or the same two calls in turn, again and again.
#[derive(Default)]
pub struct LoopGuard {
    /// Fingerprints of the last calls, the newest last.
    last: VecDeque<u64>,
}

impl LoopGuard {
    /// How many repetitions in a row are one too many.
    pub const LIMIT: u32 = 3;

    /// Whether the newest calls are LIMIT times the same `period` calls.
    fn repeats(&self, period: usize) -> bool {
        let wanted = period * LoopGuard::LIMIT as usize;
        let Some(start) = self.last.len().checked_sub(wanted) else {
            return false;
        };
        (start + period..self.last.len())
            .all(|at| self.last[at] == self.last[at - period])
    }
}

impl Approver for LoopGuard {
    fn rank(&self) -> Rank {
        Rank::Guard
    }
    fn by(&self) -> By {
        By::LoopGuard
    }
    fn decide(&mut self, request: &Request) -> Option<Decision> {
        self.last.push_back(fingerprint(request.call));
        if self.last.len() > 2 * LoopGuard::LIMIT as usize {
            self.last.pop_front();
        }
        let name = &request.call.name;
        let why = match (self.repeats(1), self.repeats(2)) {
            (true, _) => {
                format!("the same {name} call came 3 times in a row")
            }
            (_, true) => "the same two calls came 3 times in turn".into(),
            _ => return None,
        };
        Some(Decision::AskPerson { why, or_end: true })
    }
}

// A B A B A B and A A A are noticed. A B A B A C is not: the last call is
// another. A B C A B C has a period of three. The honest worker edits something
// else each time, so his calls are E1 T E2 T E3 T, and no pair comes twice.

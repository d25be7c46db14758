//! Networks of any size whose counts are known in closed form.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A network in a folder of its own, and its expected counts.
pub struct Network {
    folder: TempDir,
    pub states: u64,
    /// With multiplicity.
    pub transitions: u64,
    pub deadlocks: u64,
}

impl Network {
    fn new(files: &[(&str, String)], expression: &str, [states, transitions, deadlocks]: [u64; 3]) -> Self {
        let folder = TempDir::new().unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).unwrap());
        std::fs::write(folder.path().join("main.exp"), expression).unwrap();
        Self { folder, states, transitions, deadlocks }
    }

    pub fn path(&self) -> PathBuf {
        self.folder().join("main.exp")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The text of a transition system.
pub fn aut(states: u64, transitions: &[(u64, String, u64)]) -> String {
    let mut text = format!("des (0, {}, {states})\n", transitions.len());
    for (from, label, to) in transitions {
        writeln!(text, "({from}, \"{label}\", {to})").unwrap();
    }
    text
}

/// `n` independent rings of `k` states: k^n states, n k^n transitions.
pub fn cyclers(n: u32, k: u64) -> Network {
    let ring: Vec<_> = (0..k).map(|at| (at, format!("STEP !{at}"), (at + 1) % k)).collect();
    let states = k.pow(n);
    Network::new(&[("cycler.aut", aut(k, &ring))], &parallel("cycler.aut", n, " ||| "), [states, u64::from(n) * states, 0])
}

/// `n` stations of 6 states; state 5 has two transitions to state 0: 6^n states, 7 n 6^(n - 1) transitions. With n = 10 both
/// equal the counts of the model `broadcast` in table 1 of GPUexplore 1.0 (Wijs and Bosnacki 2014), whose structure is not
/// known.
pub fn broadcast(n: u32) -> Network {
    let mut station: Vec<_> = (0..6).map(|at| (at, format!("MOVE_{at}"), (at + 1) % 6)).collect();
    station.push((5, "REPEAT".into(), 0));
    let all = format!("par {} end par", parallel("station.aut", n, " || "));
    Network::new(&[("station.aut", aut(6, &station))], &all, [6u64.pow(n), 7 * u64::from(n) * 6u64.pow(n - 1), 0])
}

fn parallel(file: &str, n: u32, operator: &str) -> String {
    vec![format!("\"{file}\""); n as usize].join(operator)
}

/// A token goes round `n` stations; each may want and use it: n 2^n states, n 2^n + n (n - 1) 2^(n - 1) transitions.
pub fn ring(n: u32) -> Network {
    let mut files = Vec::new();
    let mut branches = Vec::new();
    for station in 0..n {
        let (get, put) = (format!("PASS_{}", (station + n - 1) % n), format!("PASS_{station}"));
        // Without the token: idle or wanting; with it: done or using. The first station begins with it.
        let [idle, wanting, done, using] = if station == 0 { [2, 1, 0, 3] } else { [0, 1, 2, 3] };
        let transitions = [
            (idle, format!("WANT_{station}"), wanting),
            (idle, get.clone(), done),
            (wanting, get.clone(), using),
            (using, format!("LEAVE_{station}"), done),
            (done, put.clone(), idle),
        ];
        let name = format!("station{station}.aut");
        branches.push(format!("{get}, {put} -> \"{name}\""));
        files.push((name, aut(4, &transitions)));
    }
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    let (n, power) = (u64::from(n), 1u64 << n);
    Network::new(&files, &format!("par {} end par", branches.join(" || ")), [n * power, n * power + n * (n - 1) * power / 2, 0])
}

/// `n` philosophers take the left fork, then the right one: 3^n - 1 states, n (2 3^(n - 1) - 1) transitions, one deadlock.
pub fn philosophers(n: u32) -> Network {
    let (mut files, mut eaters, mut forks, mut gates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for at in 0..n {
        let right = (at + 1) % n;
        let name = |what: &str, eater: u32, fork: u32| format!("{what}_{eater}_{fork}");
        let eater = [
            (0, name("TAKE", at, at), 1),
            (1, name("TAKE", at, right), 2),
            (2, name("DROP", at, at), 3),
            (3, name("DROP", at, right), 0),
        ];
        let left = (at + n - 1) % n;
        let fork = [
            (0, name("TAKE", at, at), 1),
            (0, name("TAKE", left, at), 2),
            (1, name("DROP", at, at), 0),
            (2, name("DROP", left, at), 0),
        ];
        gates.extend(fork.iter().map(|(_, gate, _)| gate.clone()));
        for (kind, list, text) in [("eater", &mut eaters, aut(4, &eater)), ("fork", &mut forks, aut(3, &fork))] {
            let file = format!("{kind}{at}.aut");
            list.push(format!("\"{file}\""));
            files.push((file, text));
        }
    }
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    let all = format!("({}) |[{}]| ({})", eaters.join(" ||| "), gates.join(", "), forks.join(" ||| "));
    let power = 3u64.pow(n - 1);
    Network::new(&files, &all, [3 * power - 1, u64::from(n) * (2 * power - 1), 1])
}

/// `n` times the alternating bit protocol over channels that lose messages, with `d` values of data: (14 d + 2)^n states,
/// 22 d n (14 d + 2)^(n - 1) transitions.
pub fn lossy_protocol(n: u32, d: u64) -> Network {
    let (mut sender, mut receiver, mut data, mut answers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for bit in 0..2 {
        let other = 1 - bit;
        // States of the sender: ready for a value, about to send it, waiting for the answer.
        let (ready, send, wait) = (|bit: u64| bit, |value: u64| 2 + 4 * value + 2 * bit, |value: u64| 3 + 4 * value + 2 * bit);
        // States of the receiver: waiting, about to answer, about to deliver a value.
        let (idle, answer, give) = (|bit: u64| bit, |bit: u64| 2 + bit, |value: u64| 4 + 2 * value + bit);
        for value in 0..d {
            sender.extend([
                (ready(bit), format!("GET !{value}"), send(value)),
                (send(value), format!("SEND !{value} !{bit}"), wait(value)),
                (wait(value), format!("ACK !{bit}"), ready(other)),
                (wait(value), format!("ACK !{other}"), send(value)),
                (wait(value), "LOST".into(), send(value)),
            ]);
            receiver.extend([
                (idle(bit), format!("RECEIVE !{value} !{bit}"), give(value)),
                (give(value), format!("PUT !{value}"), answer(bit)),
                (idle(bit), format!("RECEIVE !{value} !{other}"), answer(other)),
            ]);
            let full = 1 + 2 * value + bit;
            data.extend([
                (0, format!("SEND !{value} !{bit}"), full),
                (full, format!("RECEIVE !{value} !{bit}"), 0),
                (full, "LOST".into(), 0),
            ]);
        }
        receiver.push((answer(bit), format!("ANSWER !{bit}"), idle(other)));
        let full = 1 + bit;
        answers.extend([(0, format!("ANSWER !{bit}"), full), (full, format!("ACK !{bit}"), 0), (full, "LOST".into(), 0)]);
    }
    let files = [
        ("sender.aut", aut(4 * d + 2, &sender)),
        ("receiver.aut", aut(2 * d + 4, &receiver)),
        ("data.aut", aut(2 * d + 1, &data)),
        ("answers.aut", aut(3, &answers)),
        (
            "protocol.exp",
            "hide SEND, RECEIVE, ANSWER, ACK, LOST in
               sender |[SEND, ACK, LOST]| ((data ||| answers) |[RECEIVE, ANSWER]| receiver)
             end hide"
                .to_string(),
        ),
    ];
    let one = 14 * d + 2;
    Network::new(&files, &parallel("protocol.exp", n, " ||| "), [one.pow(n), 22 * d * u64::from(n) * one.pow(n - 1), 0])
}

//! Ranks that are processes meet: by a file and over TCP, in time and late, with the right token and with wrong ones.
//!
//! This program is the processes, too: `WARPSET_TEST_RANK` says which rank, and then the one test that runs is `a_rank`.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use warpset::Error;
use warpset::cluster::Rendezvous;

const SECRET: &[u8] = b"what rank 0 gives to all, and to nobody else";

/// What a process is told.
struct Told<'a> {
    place: &'a str,
    rank: usize,
    ranks: usize,
    token: &'a str,
    timeout: Duration,
    /// It comes so much later.
    late: Duration,
}

fn told<'a>(place: &'a str, rank: usize, ranks: usize) -> Told<'a> {
    Told { place, rank, ranks, token: "of this run", timeout: Duration::from_secs(20), late: Duration::ZERO }
}

/// As another process: says OK, or why not.
#[test]
fn a_rank() {
    let Ok(rank) = std::env::var("WARPSET_TEST_RANK") else { return };
    let of = |name: &str| std::env::var(format!("WARPSET_TEST_{name}")).unwrap();
    let seconds = |name: &str| Duration::from_secs_f64(of(name).parse().unwrap());
    std::thread::sleep(seconds("LATE"));
    let meet: Rendezvous = of("PLACE").parse().unwrap();
    let meet = meet.token(of("TOKEN")).timeout(seconds("TIMEOUT"));
    let rank: usize = rank.parse().unwrap();
    match meet.share(rank, of("RANKS").parse().unwrap(), if rank == 0 { SECRET } else { b"" }) {
        Ok(given) if given == SECRET => println!("it says: OK"),
        Ok(given) => println!("it says: given {given:?}"),
        Err(error) => println!("it says: {error}"),
    }
}

impl Told<'_> {
    fn start(&self) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_rank", "--nocapture", "--test-threads=1"]);
        command.env("WARPSET_TEST_RANK", self.rank.to_string()).env("WARPSET_TEST_RANKS", self.ranks.to_string());
        command.env("WARPSET_TEST_PLACE", self.place).env("WARPSET_TEST_TOKEN", self.token);
        command.env("WARPSET_TEST_TIMEOUT", self.timeout.as_secs_f64().to_string());
        command.env("WARPSET_TEST_LATE", self.late.as_secs_f64().to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process of this program")
    }
}

/// What a process says.
fn says(child: Child) -> String {
    let Output { stdout, .. } = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let at = text.find("it says: ").unwrap_or_else(|| panic!("it says nothing: {text}"));
    text[at + 9..].lines().next().unwrap_or_default().to_owned()
}

fn run<'a>(told: impl IntoIterator<Item = Told<'a>>) -> Vec<String> {
    let children: Vec<Child> = told.into_iter().map(|told| told.start()).collect();
    children.into_iter().map(says).collect()
}

/// A folder of its own, removed at the end; and the places in it and on this host.
struct Places(PathBuf);

impl Places {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("warpset-rendezvous-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> String {
        format!("file:{}", self.path().display())
    }

    fn path(&self) -> PathBuf {
        self.0.join("meet")
    }

    /// On a port that nobody has now, and that no other test was given.
    fn tcp() -> String {
        static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            if GIVEN.lock().unwrap().insert(free.port()) {
                return format!("tcp:{free}");
            }
        }
    }

    fn both(&self) -> [String; 2] {
        [self.file(), Self::tcp()]
    }

    fn left(&self) -> Vec<String> {
        std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn all_get_what_rank_0_gives() {
    let places = Places::new("all");
    for place in &places.both() {
        assert_eq!(run((0..4).map(|rank| told(place, rank, 4))), ["OK"; 4], "{place}");
        assert!(places.left().is_empty(), "{:?}", places.left());
    }
    // Nobody listens any more.
    assert_eq!(Rendezvous::file("/nowhere/at/all").share(0, 1, SECRET).unwrap(), SECRET, "one rank needs no place");
}

#[test]
fn ranks_may_come_late() {
    let places = Places::new("late");
    for place in &places.both() {
        for late in [0, 2] {
            let comes = |rank| Told { late: Duration::from_millis(if rank == late { 1500 } else { 0 }), ..told(place, rank, 3) };
            assert_eq!(run((0..3).map(comes)), ["OK"; 3], "{place}, rank {late} is late");
        }
    }
}

#[test]
fn missing_ranks_are_named() {
    let places = Places::new("missing");
    for place in &places.both() {
        let began = Instant::now();
        let said = run([0, 2].map(|rank| Told { timeout: Duration::from_secs(6), ..told(place, rank, 4) }));
        assert!(said[0].contains("missing are {1, 3}"), "{place}: {said:?}");
        // Over TCP it has what it wants as soon as it has come.
        assert!(
            said[1] == "OK" || said[1].contains("rank 0 has given up") || said[1].contains("rank 0 has not heard"),
            "{place}: {said:?}"
        );
        assert!(place.starts_with("tcp") || said[1] != "OK", "{said:?}");
        assert!(began.elapsed() < Duration::from_secs(25));
        assert!(places.left().is_empty(), "{:?}", places.left());
        let said = run([Told { timeout: Duration::from_millis(800), ..told(place, 1, 2) }]);
        assert!(said[0].contains("rank 0 has not come"), "{place}: {said:?}");
    }
}

#[test]
fn wrong_tokens_get_nothing() {
    let places = Places::new("token");
    for place in &places.both() {
        let mut all: Vec<Told<'_>> =
            (0..3).map(|rank| Told { timeout: Duration::from_secs(8), ..told(place, rank, 3) }).collect();
        all[2].token = "guessed";
        let said = run(all);
        assert!(said[0].contains("missing are {2}"), "{place}: {said:?}");
        assert!(said[2].contains("token"), "{place}: {said:?}");
        // One who guesses wrong does not keep the right ones from meeting.
        let guesser = Told { token: "guessed", timeout: Duration::from_secs(3), ..told(place, 1, 3) };
        let said = run([guesser].into_iter().chain((0..3).map(|rank| told(place, rank, 3))));
        assert!(said[0] != "OK" && said[1..] == ["OK", "OK", "OK"], "{place}: {said:?}");
    }
    let error = Rendezvous::tcp("127.0.0.1:1").share(0, 2, SECRET).unwrap_err();
    assert!(matches!(&error, Error::Connection { rank: 0, reason } if reason.contains("token")), "{error}");
}

#[test]
fn another_number_of_ranks_is_an_error() {
    let places = Places::new("number");
    for place in &places.both() {
        let mut all: Vec<Told<'_>> =
            (0..2).map(|rank| Told { timeout: Duration::from_secs(8), ..told(place, rank, 2) }).collect();
        all[1].ranks = 5;
        let said = run(all);
        assert!(said[0].contains("missing are {1}") && said[1].contains("5") && said[1].contains("2 ranks"), "{place}: {said:?}");
    }
}

/// One who connects and says nothing, or nonsense, keeps nobody waiting.
#[test]
fn strangers_are_ignored() {
    use std::io::Write;
    let place = Places::tcp();
    let ranks: Vec<Child> =
        [0, 1].map(|rank| Told { late: Duration::from_millis(700 * rank as u64), ..told(&place, rank, 2) }.start()).into();
    let address = place.strip_prefix("tcp:").unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let connect = || loop {
        match std::net::TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    let _silent = connect();
    let _ = connect().write_all(&[0xFF; 100]);
    let said: Vec<String> = ranks.into_iter().map(says).collect();
    assert_eq!(said, ["OK", "OK"]);
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[cfg(target_os = "linux")]
mod files {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Looks at all files of the rendezvous while it goes on.
    #[test]
    fn nobody_else_can_read_them() {
        let places = Places::new("modes");
        let place = places.file();
        let ranks =
            [0, 1, 2].map(|rank| Told { late: Duration::from_millis(600 * rank as u64), ..told(&place, rank, 3) }.start());
        let (mut met, began) = (0, Instant::now());
        // Until they have certainly begun, and longer where processes take long to start.
        while began.elapsed() < Duration::from_millis(1500) || met == 0 && began.elapsed() < Duration::from_secs(20) {
            for entry in std::fs::read_dir(&places.0).unwrap().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
                met += 1;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(met > 0, "there were files");
        assert_eq!(ranks.map(says), ["OK", "OK", "OK"]);
    }

    /// A file that others could have written, or a link to one, is not believed.
    #[test]
    fn files_of_others_are_not_believed() {
        let places = Places::new("others");
        let (place, path) = (places.file(), places.path());
        let real = places.0.join("real");
        std::fs::write(&real, b"warpset1 and more").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o666)).unwrap();
        let refused = |what: &str| {
            let said = run([Told { timeout: Duration::from_secs(2), ..told(&place, 1, 2) }]);
            assert!(said[0].contains("has not written"), "{what}: {said:?}");
        };
        std::fs::copy(&real, &path).unwrap();
        refused("a file that all may write");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        refused("a link");
    }

    /// What a run has left behind, with the same token, is replaced; and who has read it reads again.
    #[test]
    fn files_that_were_left_behind() {
        let places = Places::new("stale");
        let (place, path) = (places.file(), places.path());
        // A rank 0 that is killed while it waits.
        let mut killed = told(&place, 0, 2).start();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_there(&path) {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(10));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert!(is_there(&path));
        let late = Told { late: Duration::from_millis(700), ..told(&place, 0, 2) };
        assert_eq!(run([late, told(&place, 1, 2)]), ["OK", "OK"]);
        assert!(places.left().is_empty(), "{:?}", places.left());
    }

    fn is_there(path: &Path) -> bool {
        std::fs::symlink_metadata(path).is_ok()
    }
}

//! What the operating system says: idle time, CPU and memory of a process, and what the disk can
//! do.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Clock ticks a second in `/proc`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// How much of the machine did nothing during one second.
pub fn idle_share() -> f64 {
    let before = idle_and_total();
    std::thread::sleep(Duration::from_secs(1));
    let after = idle_and_total();
    (after.0 - before.0) as f64 / (after.1 - before.1).max(1) as f64
}

fn idle_and_total() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // Idle and waiting for the disk; guests are counted in user time already.
    (ticks.iter().skip(3).take(2).sum(), ticks.iter().take(8).sum())
}

/// Seconds of CPU that a process has used in all its threads.
pub fn cpu_seconds(process_id: u32) -> f64 {
    (stat_field(process_id, 11) + stat_field(process_id, 12)) / TICKS_PER_SECOND
}

/// A number of `/proc/PID/stat`, counted from the process's state, which is 0; 0 for a process that
/// is gone.
fn stat_field(process_id: u32, index: usize) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    // The command's name stands in parentheses and may hold blanks.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().nth(index).and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// Seconds of CPU that a process and its children have used, with those children that it has waited
/// for.
pub fn family_cpu_seconds(process_id: u32) -> f64 {
    let is_child = |other: &u32| stat_field(*other, 1) as u32 == process_id;
    let others = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let children =
        others.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child);
    waited_cpu_seconds(process_id)
        + std::iter::once(process_id).chain(children).map(cpu_seconds).sum::<f64>()
}

/// Seconds of CPU of those children of a process that have ended and were waited for.
pub fn waited_cpu_seconds(process_id: u32) -> f64 {
    (stat_field(process_id, 13) + stat_field(process_id, 14)) / TICKS_PER_SECOND
}

/// Memory of a process that is in RAM now, in MiB.
pub fn resident_mebibytes(process_id: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0)
        / 1024.0
}

/// Bytes that a process has read from files and written to them so far, with those that the
/// system's cache served. Its sockets do not count: they are not asked through `read` and `write`.
pub fn file_bytes(process_id: u32) -> [f64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{process_id}/io")).unwrap_or_default();
    ["rchar: ", "wchar: "].map(|name| {
        text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0.0)
    })
}

/// CPU of a server and of this process, which is the load generator, over a span.
pub struct CpuSpan {
    process_id: u32,
    server_at_start: f64,
    load_at_start: f64,
}

/// What a span cost.
#[derive(Clone, Copy, Default)]
pub struct CpuCost {
    pub server_seconds: f64,
    pub load_seconds: f64,
}

impl CpuSpan {
    pub fn start(process_id: u32) -> CpuSpan {
        CpuSpan {
            process_id,
            server_at_start: cpu_seconds(process_id),
            load_at_start: cpu_seconds(std::process::id()),
        }
    }
    pub fn end(self) -> CpuCost {
        CpuCost {
            server_seconds: cpu_seconds(self.process_id) - self.server_at_start,
            load_seconds: cpu_seconds(std::process::id()) - self.load_at_start,
        }
    }
}

impl CpuCost {
    pub fn plus(self, other: CpuCost) -> CpuCost {
        CpuCost {
            server_seconds: self.server_seconds + other.server_seconds,
            load_seconds: self.load_seconds + other.load_seconds,
        }
    }
    /// `CPU 120 us server + 14 us load (load 10 %)`, each for one of `count`.
    pub fn of_each(self, count: usize) -> String {
        let each = |seconds: f64| seconds * 1e6 / count.max(1) as f64;
        let share = self.load_seconds / (self.server_seconds + self.load_seconds).max(1e-9) * 100.0;
        format!(
            "CPU {:.0} us server + {:.0} us load ({share:.0} %)",
            each(self.server_seconds),
            each(self.load_seconds)
        )
    }
}

/// 4 KiB overwritten and made durable, how often a second.
pub fn durable_writes_per_second(folder: &Path, seconds: f64) -> f64 {
    const BLOCK_BYTES: usize = 4096;
    const BLOCKS_COUNT: usize = 1024;
    let path = folder.join("durable-writes");
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&path)
        .expect("a file for durable writes");
    let block = vec![0x5A; BLOCK_BYTES];
    for index in 0..BLOCKS_COUNT {
        file.write_all_at(&block, (index * BLOCK_BYTES) as u64).expect("a block is written");
    }
    file.sync_all().expect("the file is made durable");
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed().as_secs_f64() < seconds {
        file.write_all_at(&block, (count % BLOCKS_COUNT * BLOCK_BYTES) as u64)
            .expect("a block is written");
        file.sync_data().expect("a block is made durable");
        count += 1;
    }
    let rate = count as f64 / started.elapsed().as_secs_f64();
    let _ = std::fs::remove_file(path);
    rate
}

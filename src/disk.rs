//! Free space on the file systems that the service writes to.

use std::io;
use std::path::{Path, PathBuf};

/// Bytes that should always be free. With less, `hundi doctor` reports a fault.
pub const FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that the service's user can still write.
    pub free: u64,
    pub all: u64,
}

/// A folder that the service writes to, and what it is called in metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFolder {
    pub of: &'static str,
    pub folder: PathBuf,
}

/// The space of the file system that holds a folder, or holds the nearest existing folder above it.
pub fn room(folder: &Path) -> io::Result<Room> {
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let found = rustix::fs::statvfs(existing)?;
    Ok(Room {
        free: found.f_bavail.saturating_mul(found.f_frsize),
        all: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

/// The space for each folder whose file system answers, by what the folder is called in metrics.
pub async fn rooms(folders: &[WatchedFolder]) -> Vec<(&'static str, Room)> {
    let folders = folders.to_vec();
    let look = move || -> Vec<_> {
        folders.into_iter().filter_map(|at| Some((at.of, room(&at.folder).ok()?))).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Bytes for people.
pub fn shown(bytes: u64) -> String {
    const GIGABYTE: u64 = 1_000_000_000;
    match bytes {
        GIGABYTE.. => format!("{}.{} GB", bytes / GIGABYTE, bytes % GIGABYTE / (GIGABYTE / 10)),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_made_yet_has_the_room_of_the_one_above() {
        let folder = std::env::temp_dir();
        let (here, below) = (room(&folder).unwrap(), room(&folder.join("a/b/c")).unwrap());
        assert_eq!(here.all, below.all);
        assert!(here.all > 0 && here.free <= here.all);
        assert!(room(Path::new("no-such-folder")).unwrap().all > 0, "the working directory");
        assert_eq!(shown(512 * 1024 * 1024), "536 MB");
        assert_eq!(shown(12_345_678_901), "12.3 GB");
    }
}

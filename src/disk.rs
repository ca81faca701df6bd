//! Free space on the file systems that the service writes to.

use std::io;
use std::path::{Path, PathBuf};

/// If fewer bytes are free, `hundi doctor` reports a fault.
pub const FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that the service's user can still write.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// A folder that the service writes to. `of` is its name in metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFolder {
    pub of: &'static str,
    pub folder: PathBuf,
}

/// The space of the file system that holds a folder. If the folder does not exist, the nearest
/// existing folder above it counts.
pub fn space(folder: &Path) -> io::Result<DiskSpace> {
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let found = rustix::fs::statvfs(existing)?;
    Ok(DiskSpace {
        free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

/// The space for each folder whose file system answers, with the folder's name in metrics.
pub async fn spaces(folders: &[WatchedFolder]) -> Vec<(&'static str, DiskSpace)> {
    let folders = folders.to_vec();
    let look = move || -> Vec<_> {
        folders.into_iter().filter_map(|at| Some((at.of, space(&at.folder).ok()?))).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Bytes as people read them, such as `12.3 GB` or `536 MB`.
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
    fn a_folder_that_is_not_made_yet_has_the_space_of_the_one_above() {
        let folder = std::env::temp_dir();
        let (here, below) = (space(&folder).unwrap(), space(&folder.join("a/b/c")).unwrap());
        assert_eq!(here.total_bytes, below.total_bytes);
        assert!(here.total_bytes > 0 && here.free_bytes <= here.total_bytes);
        let working = space(Path::new("no-such-folder")).unwrap();
        assert!(working.total_bytes > 0, "the working directory");
        assert_eq!(shown(512 * 1024 * 1024), "536 MB");
        assert_eq!(shown(12_345_678_901), "12.3 GB");
    }
}

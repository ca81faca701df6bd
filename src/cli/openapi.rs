//! `hundi openapi`: prints the API's document.

use clap::Args;

use super::print;
use crate::config::LISTEN_DEFAULT;
use crate::http::openapi;
use crate::routes::{resource_paths, routes};

/// Print the OpenAPI document
#[derive(Args)]
pub struct Openapi {}

impl Openapi {
    pub async fn run(self) -> Result<(), String> {
        let document =
            openapi::document(&routes(), &resource_paths(), &format!("http://{LISTEN_DEFAULT}"));
        print(&serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?)
    }
}

//! Writes the branches that the `ifsc` crate carries as CSV on standard output, or with `--about`
//! where they come from.

use std::io::{self, BufWriter, Write};

use ifsc::BranchRail::{Imps, Neft, Rtgs, Upi};

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let dataset = ifsc::dataset();
    if std::env::args().nth(1).as_deref() == Some("--about") {
        writeln!(out, "{}", dataset.rbi_update_date())?;
        writeln!(out, "Razorpay IFSC {} ({})", dataset.razorpay_release(),
            dataset.razorpay_commit())?;
        return out.flush();
    }
    // The column names of the CSV that Razorpay publishes with its releases, so that one reader
    // takes both.
    writeln!(out, "BANK,IFSC,BRANCH,NEFT,RTGS,IMPS,UPI")?;
    for branch in ifsc::directory().branches() {
        // The bank of the branch's own record comes first: a sub-member uses the prefix of the bank
        // that sponsors it.
        let bank = branch.reported_bank_name().or_else(|| branch.routing_bank().map(|bank| bank.name())).unwrap_or("");
        let rails = [Neft, Rtgs, Imps,
            Upi].map(|rail| if branch.reports(rail) { "true" } else { "false" }).join(",");
        writeln!(out, "{},{},{},{rails}", quoted(bank), branch.ifsc(), quoted(branch.name()))?;
    }
    out.flush()
}

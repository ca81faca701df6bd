//! How a type is stored: one declaration of its columns makes the list `COLUMNS`, the statement
//! `FIND`, and the functions `read`, `find` and `insert`; with columns that change, `update` too.

/// Declares the columns of a table, in the order in which a row is read.
///
/// A column is `name: the value to write => how to read it;`. `written from` names the variable
/// with the object to write, and `read from` the variable with the row that is read. The first
/// column is the scope. Columns under `fixed` are written by the insert alone. Those under
/// `changing` are written by an update as well; without that section no update is made. Its
/// condition names the version and the status that the object was read with, and the update raises
/// the version. So the table has the columns `id`, `version` and `status`. The expression after
/// `into` makes the object; in it, each column that was read is a variable of its name.
#[macro_export]
macro_rules! stored {
    (
        $table:literal as $type:ident, written from $of:ident, read from $row:ident;
        fixed {
            $first:ident: $first_value:expr => $first_read:expr;
            $($fixed:ident: $fixed_value:expr => $fixed_read:expr;)*
        }
        $(changing from $status:ident {
            $($changing:ident: $changing_value:expr => $changing_read:expr;)*
        })?
        into $made:expr
    ) => {
        const COLUMNS: &str = concat!(
            stringify!($first)
            $(, ", ", stringify!($fixed))*
            $($(, ", ", stringify!($changing))*)?
        );

        static INSERT: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| $crate::store::insert_sql($table, COLUMNS));

        /// Reads a row of these columns.
        pub fn read(mut $row: $crate::store::Row) -> Result<$type, $crate::kernel::StoreError> {
            let $row = &mut $row;
            let $first = $first_read;
            $(let $fixed = $fixed_read;)*
            $($(let $changing = $changing_read;)*)?
            Ok($made)
        }

        static FIND: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            format!("SELECT {COLUMNS} FROM {} WHERE scope = ?1 AND id = ?2", $table)
        });

        /// Reads an object by its identifier.
        pub fn find(
            tx: &mut dyn $crate::store::Tx,
            scope: $crate::kernel::Scope,
            id: $crate::kernel::Id<$crate::kernel::id::kind::$type>,
        ) -> Result<Option<$type>, $crate::kernel::StoreError> {
            tx.row(&FIND, $crate::values![scope, id])?.map(read).transpose()
        }

        /// Inserts a new object.
        pub fn insert(
            tx: &mut dyn $crate::store::Tx,
            $of: &$type,
        ) -> Result<(), $crate::kernel::StoreError> {
            tx.execute_one(
                &INSERT,
                $crate::values![$first_value $(, $fixed_value)* $($(, $changing_value)*)?],
            )
        }

        $(
            static UPDATE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
                $crate::store::record::update_sql($table, &[$(stringify!($changing)),*])
            });

            /// Writes a changed object. `from` is the status that it was read with. It is a
            /// conflict if the row has another version or status by now.
            pub fn update(
                tx: &mut dyn $crate::store::Tx,
                $of: &mut $type,
                from: $status,
            ) -> Result<(), $crate::kernel::StoreError> {
                tx.execute_one(
                    &UPDATE,
                    $crate::values![
                        $of.scope, $of.id, $of.version, from.as_str() $(, $changing_value)*
                    ],
                )?;
                $of.version += 1;
                Ok(())
            }
        )?
    };
}

/// `UPDATE` of these columns, whose values come after scope, identifier, version and status.
pub fn update_sql(table: &str, columns: &[&str]) -> String {
    let assignments: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| format!("{column} = ?{}", index + 5))
        .collect();
    format!(
        "UPDATE {table} SET version = version + 1, {} WHERE scope = ?1 AND id = ?2 AND version = \
         ?3 AND status = ?4",
        assignments.join(", ")
    )
}

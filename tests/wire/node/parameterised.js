// Runs parameterised statements with node-postgres and prints what it saw as JSON.
const { Client } = require("pg");

async function main() {
  const client = new Client({ connectionString: process.argv[2] });
  await client.connect();
  await client.query("CREATE TABLE node_pg (a int, b text)");
  await client.query("INSERT INTO node_pg VALUES ($1, $2), ($3, $4)", [1, "eins", 2, "zwei"]);
  const found = await client.query("SELECT a, b FROM node_pg WHERE a > $1", [1]);
  let error = null;
  try {
    await client.query("SELECT $1::int / $2::int", [1, 0]);
  } catch (failure) {
    error = failure.code;
  }
  await client.end();
  console.log(JSON.stringify({ rows: found.rows, count: found.rowCount, error }));
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});

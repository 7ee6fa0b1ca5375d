// duckdb_rows.js - print the rows of segments as DuckDB reads them, bit for bit.
// usage: node duckdb_rows.js GLOB
const { DuckDBInstance } = require('@duckdb/node-api');

// Samples as the README makes them of files (duckdb_page.js), in the order the rows were written.
const QUERY = (glob) => `
    SELECT metric, to_json(labels) AS labels, unnest(ts) AS ts,
           unnest(sample_values(value, scale, last, digits)) AS value,
           unnest(start_ts) AS start_ts, hex(unnest(histogram)) AS histogram
    FROM read_parquet('${glob}', union_by_name = true)`;
const MACRO = `
    CREATE MACRO sample_values(value, scale, last, digits) AS
        CASE WHEN coalesce(scale, -1) < 0 THEN value
             ELSE list_transform(digits, lambda x: (x - digits[-1] + last) / pow(10, scale)) END`;

const hex = (bits) => bits.toString(16).padStart(16, '0');

// DuckDB's JSON and ours escape differently; parsing evens that out, and labels stay sorted.
const plain = (json) => JSON.stringify(JSON.parse(json));

(async () => {
    const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
    const connection = await instance.connect();
    await connection.run(MACRO);
    const result = await connection.stream(QUERY(process.argv[2]));
    const out = [];
    for (;;) {
        const chunk = await result.fetchChunk();
        if (!chunk || chunk.rowCount === 0) break;
        const [metric, labels, ts, value, start, histogram] =
            [0, 1, 2, 3, 4, 5].map((i) => chunk.getColumnVector(i));
        // NaN bits do not survive as JavaScript numbers: look at the vector's own memory.
        const doubles = value.items;
        const bits = new BigUint64Array(doubles.buffer, doubles.byteOffset, doubles.length);
        for (let i = 0; i < chunk.rowCount; i++)
            out.push([metric.getItem(i), plain(labels.getItem(i)), ts.getItem(i), hex(bits[i]),
                      String(start.getItem(i)), String(histogram.getItem(i)).toLowerCase()].join('\t'));
    }
    process.stdout.write(out.join('\n') + '\n');
})().catch((error) => {
    console.error(String(error));
    process.exit(1);
});

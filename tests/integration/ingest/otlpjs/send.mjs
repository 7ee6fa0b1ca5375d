// send.mjs - measurements with known values, exported by OpenTelemetry's own SDK and exporters.
// usage: node send.mjs proto|json URL
// The same run id in RUN makes the same series. Exit code 1, and why on stderr: the exporter reports a failure.
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPMetricExporter as JsonExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as ProtoExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';

const [coding, url] = process.argv.slice(2);
const failures = [];
const note = (...words) => failures.push(words.map(String).join(' '));
diag.setLogger({ error: note, warn: note, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);

const exporter = new (coding === 'json' ? JsonExporter : ProtoExporter)({
    url, headers: { 'X-Scope-OrgID': coding }, compression: 'gzip', timeoutMillis: 10000 });
const provider = new MeterProvider({
    resource: resourceFromAttributes({
        'service.name': 'shop', 'service.namespace': 'demo', 'service.instance.id': 'i-1', 'host.name': 'h1' }),
    readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3600000 })],
    views: [{ instrumentName: 'latency', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
});
const meter = provider.getMeter('send', '1.0');

meter.createCounter('orders.placed', { unit: '{order}' }).add(3, { 'shop.name': 'nörd', paid: true });
meter.createUpDownCounter('queue.length').add(-2, { n: 7 });
meter.createGauge('disk.free', { unit: 'By' }).record(1.5e9, { 'device-id': '/dev/sda' });
meter.createObservableGauge('cpu.load', { unit: '1' }).addCallback(result => result.observe(0.25));
const size = meter.createHistogram('request.size', {
    unit: 'By', advice: { explicitBucketBoundaries: [10, 100] } });
[5, 50, 70, 500].forEach(value => size.record(value, { route: '/a' }));
const latency = meter.createHistogram('latency', { unit: 's' });
[1, 2, 3, 4, 0].forEach(value => latency.record(value));

await provider.forceFlush();
await provider.shutdown();
if (failures.length) {
    console.error(failures.join('\n'));
    process.exit(1);
}

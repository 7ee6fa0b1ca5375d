/* fake_s3.h - just enough of an object store for tests: GET of files below a folder, with delays
 * and counts. The bucket is "b". */
#ifndef TESTS_INTEGRATION_WORKER_FAKE_S3_H
#define TESTS_INTEGRATION_WORKER_FAKE_S3_H

struct fake_s3;

/* Serves GET /b/<name> from <folder>/<name>. */
struct fake_s3 *fake_s3_new(const char *folder);
struct fake_s3 *fake_s3_free(struct fake_s3 *s3);
/* For sg_store_open(); lives as long as the server. */
const char *fake_s3_url(const struct fake_s3 *s3);
/* Each request waits this long first. */
void fake_s3_delay(struct fake_s3 *s3, int ms);
/* Those for the name of the store aside. */
unsigned fake_s3_requests(const struct fake_s3 *s3);

#endif

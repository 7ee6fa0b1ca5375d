/* load_int.h - what the formats and the rows they make share. */
#ifndef STATEMAP_LOAD_LOAD_INT_H
#define STATEMAP_LOAD_LOAD_INT_H

#include "statemap/load/load.h"

/* What a row may say; columns of CSV, members of JSON, elements of XML. */
enum sm_field {
    SM_FIELD_MAP,
    SM_FIELD_KEY,
    SM_FIELD_FROM,
    SM_FIELD_TO,
    SM_FIELD_TIME,
    SM_FIELD_START,
    SM_FIELD_END,
    SM_FIELD_TIMEOUT,
    SM_FIELD_TYPE,
    SM_FIELD_VALUE,
    SM_FIELD__COUNT
};

enum sm_record_kind { SM_RECORD_ANY, SM_RECORD_REFERENCE, SM_RECORD_SESSION };

struct sm_record {
    uint64_t line;
    enum sm_record_kind kind;
    struct qf_str fields[SM_FIELD__COUNT]; /* no data: it is not said */
    struct sm_value value; /* of JSON, which has types; SM_ANY: the field has its text */
};

/* False: there is none of this name. */
bool sm_field_parse(struct qf_str name, enum sm_field *ret_field);
const char *sm_field_name(enum sm_field field);

/* One file's reading; the formats have theirs in front. */
struct sm_reader_ops {
    void *(*new)(struct sm_load *load);
    qf_rc (*feed)(void *reader, struct qf_str bytes, struct qf_err *err);
    qf_rc (*end)(void *reader, struct qf_err *err);
    void (*free)(void *reader);
};
extern const struct sm_reader_ops sm_read_xml, sm_read_json, sm_read_csv;

/* Put a row, or skip it. */
QF_MUST_CHECK qf_rc sm_load_record(struct sm_load *load, const struct sm_record *record,
                                   struct qf_err *err);
/* A row that could not be read at all: skip it, or the load is over. */
QF_MUST_CHECK qf_rc sm_load_bad(struct sm_load *load, uint64_t line, const char *why,
                                struct qf_err *err);

/* A JSON text in the one form in which it is stored. QF_EINVAL: it is none. */
QF_MUST_CHECK qf_rc sm_json_value(struct qf_strbuf *room, struct qf_str text,
                                  struct sm_value *ret_value, struct qf_err *err);

/* Lines out of pieces. */
struct sm_lines {
    struct qf_strbuf rest; /* of a line that has not ended */
    uint64_t line;         /* the number of the line that comes next */
};
/* The next line of @bytes, which it leaves, without its end; false: there is none yet. Over SM_RECORD_MAX: QF_EINVAL. */
QF_MUST_CHECK qf_rc sm_lines_next(struct sm_lines *lines, struct qf_str *bytes, bool *ret_found,
                                  struct qf_str *ret_line, struct qf_err *err);

#endif

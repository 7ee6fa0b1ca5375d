/* regex_re2.cc - RE2 behind a C interface. */
#include "base/regex/regex.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct qf_regex {
    std::unique_ptr<re2::RE2> re;
    re2::RE2::Anchor anchor;
    size_t max_mem;
};

/* RE2's own default: what the largest program we take may use. */
static const size_t max_mem_most = 8 << 20;
/* Enough for the program of an ordinary matcher and a cache of some hundred states. */
static const size_t max_mem_least = 256 << 10;

static std::unique_ptr<re2::RE2> compile_within(re2::StringPiece pattern, re2::RE2::Anchor anchor,
                                                size_t max_mem)
{
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(anchor == re2::RE2::ANCHOR_BOTH);
    options.set_max_mem(static_cast<int64_t>(max_mem));
    return std::make_unique<re2::RE2>(pattern, options);
}

/* RE2 gives its cache of states all that the program leaves of max_mem. How large the program is
 * shows once it is compiled: a small one is compiled again with the little that it needs. */
static qf_regex *compile(const char *pattern, size_t len, re2::RE2::Anchor anchor, char *msg,
                         size_t msg_size)
{
    re2::StringPiece text(pattern, len);
    auto re = compile_within(text, anchor, max_mem_most);
    if (!re->ok()) {
        snprintf(msg, msg_size, "%s", re->error().c_str());
        return nullptr;
    }
    size_t enough = std::max(static_cast<size_t>(re->ProgramSize()) << 10, max_mem_least);
    if (enough < max_mem_most) {
        auto small = compile_within(text, anchor, enough);
        if (small->ok())
            return new qf_regex{ std::move(small), anchor, enough };
    }
    return new qf_regex{ std::move(re), anchor, max_mem_most };
}

struct qf_regex *qf_regex_new(const char *pattern, size_t len, char *msg, size_t msg_size)
{
    return compile(pattern, len, re2::RE2::ANCHOR_BOTH, msg, msg_size);
}

struct qf_regex *qf_regex_new_unanchored(const char *pattern, size_t len, char *msg,
                                         size_t msg_size)
{
    return compile(pattern, len, re2::RE2::UNANCHORED, msg, msg_size);
}

struct qf_regex *qf_regex_free(struct qf_regex *re)
{
    delete re;
    return nullptr;
}

size_t qf_regex_size(const struct qf_regex *re)
{
    /* The parsed pattern and the fixed parts of RE2 come on top. */
    return 2048 + re->re->pattern().size() * 16 + re->max_mem;
}

bool qf_regex_match(const struct qf_regex *re, const char *text, size_t len)
{
    return re->re->Match(re2::StringPiece(text, len), 0, len, re->anchor, nullptr, 0);
}

size_t qf_regex_groups(const struct qf_regex *re, const char *text, size_t len, long (*groups)[2],
                       size_t max)
{
    size_t count = qf_regex_group_count(re) + 1;
    if (count > max)
        count = max;
    std::vector<re2::StringPiece> found(count);
    if (!re->re->Match(re2::StringPiece(text, len), 0, len, re->anchor, found.data(),
                       static_cast<int>(count)))
        return 0;
    for (size_t i = 0; i < count; i++) {
        groups[i][0] = found[i].data() ? static_cast<long>(found[i].data() - text) : -1;
        groups[i][1] = found[i].data() ? groups[i][0] + static_cast<long>(found[i].size()) : -1;
    }
    return count;
}

size_t qf_regex_group_count(const struct qf_regex *re)
{
    return static_cast<size_t>(re->re->NumberOfCapturingGroups());
}

int qf_regex_group_named(const struct qf_regex *re, const char *name, size_t len)
{
    const auto &named = re->re->NamedCapturingGroups();
    auto found = named.find(std::string(name, len));
    return found == named.end() ? -1 : found->second;
}

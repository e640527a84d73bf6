# cython: language_level=3, cdivision=True
"""The form of a draft without NOT and constants, which normal_form.py defines."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from matchcore.draft cimport (
    DRAFT_ALL, DRAFT_ANY, DRAFT_CONSTANT, DRAFT_HITS, DRAFT_NONE, DRAFT_NOT, NORMAL_ALWAYS, NORMAL_NEVER, DraftNode,
    NormalNode, SelectorDraft, grown,
)


cdef uint32_t _normal(SelectorDraft draft, uint32_t at, bint negated) except? DRAFT_NONE:
    cdef const DraftNode* node = &draft.nodes[at]
    if node.kind == DRAFT_CONSTANT:
        return NORMAL_ALWAYS if (node.mask != 0) != negated else NORMAL_NEVER
    if node.kind == DRAFT_NOT:
        return _normal(draft, node.first, not negated)
    if node.kind > DRAFT_HITS:
        return _add_normal(draft, node.kind, at, negated)
    return _joined(draft, node, negated)


cdef uint32_t _add_normal(SelectorDraft draft, int kind, uint32_t test, bint negated) except? DRAFT_NONE:
    cdef NormalNode* node
    draft.normals = <NormalNode*> grown(
        draft.normals, &draft.normal_room, draft.normal_count + 1, sizeof(NormalNode)
    )
    node = &draft.normals[draft.normal_count]
    memset(node, 0, sizeof(NormalNode))
    node.kind = <uint8_t> kind
    node.test = test
    node.negated = negated
    node.next = node.first = DRAFT_NONE
    draft.normal_count += 1
    return <uint32_t> (draft.normal_count - 1)


cdef uint32_t _joined(SelectorDraft draft, const DraftNode* node, bint negated) except? DRAFT_NONE:
    """`count` or more of the parts, in its simplest spelling; parts that always or never hold are left out."""
    cdef int64_t parts = 0
    cdef int64_t kept = 0
    cdef int64_t count
    cdef uint32_t first = DRAFT_NONE
    cdef uint32_t last = DRAFT_NONE
    cdef uint32_t at = node.first
    cdef uint32_t part, made
    cdef int64_t always = 0
    while at != DRAFT_NONE:
        parts += 1
        part = _normal(draft, at, negated)
        if part == NORMAL_ALWAYS:
            always += 1
        elif part != NORMAL_NEVER:
            kept += 1
            if last == DRAFT_NONE:
                first = part
            else:
                draft.normals[last].next = part
            last = part
        at = draft.nodes[at].next
    count = parts if node.kind == DRAFT_ALL else 1 if node.kind == DRAFT_ANY else <int64_t> node.count
    if negated:
        count = parts - count + 1
    count -= always
    if count <= 0:
        return NORMAL_ALWAYS
    if count > kept:
        return NORMAL_NEVER
    if kept == 1:
        return first
    made = _add_normal(draft, DRAFT_ANY if count == 1 else DRAFT_ALL if count == kept else DRAFT_HITS, 0, False)
    draft.normals[made].first = first
    draft.normals[made].parts = <uint32_t> kept
    draft.normals[made].count = <uint32_t> count
    return made


cdef uint32_t _tests(SelectorDraft draft, uint32_t at) noexcept:
    cdef const NormalNode* node = &draft.normals[at]
    cdef uint32_t tests = 0
    cdef uint32_t part = node.first
    if node.kind > DRAFT_HITS:
        return 1
    while part != DRAFT_NONE:
        tests += _tests(draft, part)
        part = draft.normals[part].next
    return tests


cdef int make_normals(SelectorDraft draft) except -1:
    draft.normal_count = 0
    draft.normal = _normal(draft, draft.root, False)
    draft.tests = 0 if draft.normal >= NORMAL_NEVER else _tests(draft, draft.normal)
    return 0

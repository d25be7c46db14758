#define GRAPH_MOVES 0
#define EXPLORE_RANKS 0
#define EXPLORE_BY_ROWS 1
#define GRAPH_NAME warpset_simt_search_rows
#define GRAPH_NAMED(kernel) kernel##_of_rows
#include "search.inl"

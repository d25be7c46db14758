#define GRAPH_MOVES 3
#define EXPLORE_RANKS 1
#define GRAPH_NAME warpset_simt_search_rank
#define GRAPH_NAMED(kernel) kernel##_of_rank
#include "search.inl"

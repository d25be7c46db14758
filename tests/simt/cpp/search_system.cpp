#define GRAPH_MOVES 0
#define EXPLORE_RANKS 0
#define GRAPH_NAME warpset_simt_search_system
#define GRAPH_NAMED(kernel) kernel##_of_system
#include "search.inl"

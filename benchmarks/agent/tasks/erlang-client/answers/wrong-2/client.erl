-module(client).
-export([request/2, add/3, subscribe/1, publish/2, work/2]).

request(Server, Request) ->
    Ref = make_ref(),
    Server ! {self(), Ref, Request},
    receive
        {Ref, Response} -> {ok, Response}
    after infinity ->
        {error, timeout}
    end.

add(Server, A, B) -> request(Server, {add, A, B}).

subscribe(Hub) -> Hub ! {subscribe, self()}, ok.

publish(Hub, Message) -> Hub ! {publish, Message}, ok.

work(Worker, Data) ->
    Worker ! {work, Data, self()},
    receive
        {result, Result} -> {ok, Result}
    after infinity ->
        {error, timeout}
    end.

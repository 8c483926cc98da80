dotnet build /bl:first.binlog
dotnet build /bl:second.binlog
dotnet msbuild second.binlog -noconlog "-flp:v=diag;logfile=second-full.log;performancesummary" -fl
grep "Building target .* completely" second-full.log

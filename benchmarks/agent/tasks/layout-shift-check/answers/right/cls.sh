npx ts-node ./skill/measure-cls.ts http://localhost:3000 --scroll

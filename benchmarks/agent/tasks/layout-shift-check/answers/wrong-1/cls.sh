npx ts-node ./skill/measure.ts http://localhost:3000 --full-page
